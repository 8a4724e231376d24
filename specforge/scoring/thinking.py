"""Reasoning that a model writes before its answer: what is inside ``<think>...</think>`` is not the answer."""

from __future__ import annotations

from typing import NamedTuple

_OPEN, _CLOSE = "<think>", "</think>"


class Thinking(NamedTuple):
    """A model's text, taken apart.

    Attributes:
        reasoning: what was thought; empty where nothing was.
        answer: what was answered; empty where the text was cut while thinking.
        unfinished: whether the text ends while thinking.
    """

    reasoning: str
    answer: str
    unfinished: bool


def split_thinking(text: str) -> Thinking:
    """Takes reasoning off a text. Templates that open the block in the prompt leave only its end in the text."""
    before, closed, after = text.rpartition(_CLOSE)
    if closed:
        if _OPEN in after:  # thinking again, and never done
            after, _, thought = after.partition(_OPEN)
            return Thinking(before + thought, after.strip(), True)
        return Thinking(before.replace(_OPEN, "", 1).strip(), after.lstrip(), False)
    answer, opened, thought = text.partition(_OPEN)
    if opened:
        return Thinking(thought.strip(), answer.strip(), True)
    return Thinking("", text, False)

"""The value types of scoring: what was answered, and what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """One model output to score.

    Attributes:
        row_id: the prompt's row id.
        reference: the prompt's reference.
        outputs: the model's text, one entry a turn (one, but for conversations).
        truncated: whether the token limit cut the last turn.
        failed: whether the request failed; such an answer is wrong whatever its text.
        question: the text of the last user message of each turn, for judges.
        category: the prompt's category.
    """

    row_id: str
    reference: Any
    outputs: tuple[str, ...]
    truncated: bool = False
    failed: bool = False
    question: tuple[str, ...] = ()
    category: str = ""

    @property
    def last(self) -> str:
        """The last turn's text; empty where the request failed before there was one."""
        return self.outputs[-1] if self.outputs else ""


@dataclass(frozen=True, slots=True)
class Score:
    """What a scorer says of one answer.

    Attributes:
        correct: right or wrong; None where the scorer gives no verdict (a judge's grade without a threshold).
        answer: the answer that was found in the text, normalised for display; None where none could be parsed.
        reason: why, in a few words.
        grade: a judge's grade, 1 to 10; None for other scorers.
        details: whatever else belongs into the row (a judge's prompt and reply, the sandbox's output).
    """

    correct: bool | None
    answer: str | None
    reason: str
    grade: float | None = None
    details: dict[str, Any] | None = None


class Scorer(Protocol):
    """Scores a batch of answers: code runs in parallel, and a judge answers several at once."""

    @property
    def name(self) -> str:
        """What the record calls this way of scoring, such as ``math`` or ``judge``."""
        ...

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """One score for each answer, in order. An answer that can't be parsed is wrong, never an exception."""
        ...


def verdict(answer: Answer, correct: bool, found: str | None, reason: str) -> Score:
    """The score of an answer whose text was judged; a failed or truncated request is wrong whatever its text."""
    if answer.failed:
        return Score(False, found, "the request failed")
    if answer.truncated:
        return Score(False, found, f"cut at the token limit ({reason})")
    return Score(correct, found, reason)

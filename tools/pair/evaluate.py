"""Measures a pair exactly, in PyTorch: greedy answers, acceptance lengths of a chain of drafts, and accuracy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer

from specforge.datasets.definition import Question
from specforge.datasets.scorers import ScoringOptions, make_scorer
from specforge.scoring.score import Answer
from tools.pair.batches import Encoded, padded
from tools.pair.conversation import END, Conversation, harness_question
from tools.pair.distilled import converse
from tools.pair.head import unroll
from tools.pair.holdout import sample_rows
from tools.pair.network import Eagle3, Target


@dataclass(frozen=True)
class Acceptance:
    """Sums over verification steps of a chain: ``decode_length`` is 1 + correct drafts per step."""

    steps: int = 0
    correct: int = 0

    @property
    def decode_length(self) -> float:
        return 1 + self.correct / self.steps if self.steps else float("nan")

    def __add__(self, other: Acceptance) -> Acceptance:
        return Acceptance(self.steps + other.steps, self.correct + other.correct)


def walk(ids: list[int], start: int, drafts: list[list[int]], first: int) -> Acceptance:
    """Counts a speculative decoding of ``ids`` from ``start`` on, the first answer token, which prefill gives.

    With teacher forcing a draft chain is exact up to its first wrong token, and no further token of it counts.

    Args:
        ids: prompt and answer.
        drafts: by step and by position from ``first`` on, the draft of token position + 2 + step.
    """
    at, total = start, Acceptance()
    while at < len(ids) - 1:
        base = at - 1  # features are known up to the token before the one last committed
        correct = 0
        while correct < len(drafts) and at + 1 + correct < len(ids):
            if drafts[correct][base - first] != ids[at + 1 + correct]:
                break
            correct += 1
        total += Acceptance(1, correct)
        at += correct + 1
    return total


@torch.no_grad()
def acceptance(target: Target, head: Eagle3, said: Encoded, steps: int = 3) -> Acceptance:
    """The acceptance of a chain of ``steps`` drafts over every answer of one conversation."""
    drafts, _, first = unroll(target, head, padded([said]), steps)
    chosen = [head.drafted[logits[0].argmax(-1)].tolist() for logits in drafts]
    ids, spoken = said
    total, at = Acceptance(), 0
    while at < len(ids):
        if not spoken[at]:
            at += 1
            continue
        ends = next((i for i in range(at, len(ids)) if not spoken[i]), len(ids))
        total += walk(ids[:ends], at, chosen, first)
        at = ends
    return total


def asked(dataset: str, row: Mapping[str, Any]) -> tuple[Conversation, Question] | None:
    """A row as the harness asks it; None where it holds an image."""
    question = harness_question(dataset, row)
    if not isinstance(question.content, str):
        return None
    return Conversation((question.content, *question.followups), (), question.system), question


@dataclass(frozen=True)
class Answered:
    """One sample row with the target's answers: texts by turn, and whether each ended by itself."""

    dataset: str
    question: Question
    said: Encoded
    texts: tuple[str, ...]
    ended: bool


def texts_of(tokenizer: Tokenizer, said: Encoded) -> tuple[str, ...]:
    """The answers of a conversation as text, one a turn."""
    texts: list[str] = []
    piece: list[int] = []
    for token, says in zip(*said, strict=True):
        if says:
            piece.append(token)
        elif piece:
            texts.append(tokenizer.decode(piece))
            piece = []
    return (*texts, tokenizer.decode(piece))


def answer_samples(
    target: Target, tokenizer: Tokenizer, rows: Iterable[tuple[str, Any]] | None = None
) -> list[Answered]:
    """The target's answers to the built-in samples."""
    kept = []
    for dataset, row in sample_rows() if rows is None else rows:
        if found := asked(dataset, row):
            kept.append((dataset, *found))
    grown = converse(target, tokenizer, [conversation for _, conversation, _ in kept])
    end = tokenizer.token_to_id(END)
    return [
        Answered(dataset, question, said, texts_of(tokenizer, said), said[0][-1] == end)
        for (dataset, _, question), said in zip(kept, grown, strict=True)
    ]


def acceptance_by_dataset(
    target: Target, head: Eagle3, answers: list[Answered], steps: int = 3
) -> dict[str, Acceptance]:
    """The chain's acceptance over all answers of each dataset."""
    totals: dict[str, Acceptance] = defaultdict(Acceptance)
    for answer in answers:
        totals[answer.dataset] += acceptance(target, head, answer.said, steps)
    return dict(totals)


def accuracy(dataset: str, answers: list[Answered], options: ScoringOptions) -> float | None:
    """The share of right answers as the harness scores them; None where it has no scorer."""
    scorer = make_scorer(dataset, options)
    if scorer is None:
        return None
    given = [
        Answer(str(index), a.question.reference, a.texts, truncated=not a.ended) for index, a in enumerate(answers)
    ]
    scores = scorer.score_all(given)
    return sum(score.correct is True for score in scores) / len(scores)


def report(target: Target, head: Eagle3, tokenizer: Tokenizer, options: ScoringOptions | None = None) -> str:
    """A table over the built-in samples: rows, share that ended by itself, accuracy, acceptance of three drafts."""
    answers = answer_samples(target, tokenizer)
    lengths = acceptance_by_dataset(target, head, answers)
    lines = ["dataset        rows  ended  accuracy  tokens  acceptance_length_decode"]
    for dataset, total in lengths.items():
        own = [answer for answer in answers if answer.dataset == dataset]
        right = accuracy(dataset, own, options or ScoringOptions())
        ended = sum(answer.ended for answer in own) / len(own)
        said = sum(sum(answer.said[1]) for answer in own) / len(own)
        shown = "-" if right is None else f"{right:.2f}"
        lines.append(f"{dataset:14} {len(own):4}  {ended:5.2f}  {shown:>8}  {said:6.1f}  {total.decode_length:.2f}")
    return "\n".join(lines)

"""Scores mathematical answers: extraction, comparison by notation and structure, then by math-verify.

The cheap comparisons decide most answers in this process; the others go to worker processes in one batch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from specforge.scoring.math.extract import find_answer
from specforge.scoring.math.structure import equivalent
from specforge.scoring.math.workers import Pair, compare_all
from specforge.scoring.score import Answer, Score, verdict

LIMIT_S = 10.0
"""How long one comparison may take before it counts as unequal."""


class MathScorer:
    """Compares the answer found with the reference, a LaTeX expression.

    Args:
        limit_s: seconds for one comparison.
        workers: processes for comparisons that need algebra; None for one a processor, at most four.
    """

    name = "math"

    def __init__(self, limit_s: float = LIMIT_S, workers: int | None = None) -> None:
        self._limit_s = limit_s
        self._workers = workers or min(4, os.cpu_count() or 1)

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Scores all answers; equal pairs are compared once."""
        found = [find_answer(answer.last) for answer in answers]
        pairs = {
            (str(answer.reference), text): compared_cheaply(str(answer.reference), text)
            for answer, (text, _) in zip(answers, found, strict=True)
            if text is not None
        }
        hard = [pair for pair, equal in pairs.items() if equal is None]
        by_algebra: dict[Pair, bool | None] = dict(
            zip(hard, compare_all(hard, self._limit_s, self._workers), strict=True)
        )
        return [
            verdict(answer, *self._verdict(str(answer.reference), text, where, pairs, by_algebra))
            for answer, (text, where) in zip(answers, found, strict=True)
        ]

    def _verdict(
        self,
        reference: str,
        text: str | None,
        where: str,
        pairs: dict[Pair, bool | None],
        by_algebra: dict[Pair, bool | None],
    ) -> tuple[bool, str | None, str]:
        if text is None:
            return False, None, where
        equal, how = pairs[reference, text], "by notation"
        if equal is None:
            equal, how = by_algebra[reference, text], "by math-verify"
        if equal is None:
            return False, text, f"{where}; comparing with {reference} took more than {self._limit_s:g} s"
        return equal, text, f"{where}; {'equal to' if equal else 'differs from'} {reference} {how}"


class _Undecided(Exception):
    """The answers differ in notation, and only algebra can tell."""


def compared_cheaply(reference: str, answer: str) -> bool | None:
    """Whether two answers are equivalent, as far as notation and structure tell; None where algebra must."""

    def undecided(_gold: str, _answer: str) -> bool:
        raise _Undecided

    try:
        return equivalent(reference, answer, undecided)
    except _Undecided:
        return None
    except RecursionError:  # thousands of nested brackets are no answer
        return False

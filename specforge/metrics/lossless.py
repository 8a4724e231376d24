"""Is the speculative output the target's? Token ids of two cells' answers, turn by turn.

A later turn is asked with the model's own earlier answer in its prompt, so it counts only where all turns before it
were identical.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Tokens = Sequence[int]
FIRST_DIFFERENCE_PERCENTILES = (10, 50, 90)


def first_difference(one: Tokens, other: Tokens) -> int | None:
    """Index of the first token that differs; None where both are the same.

    Where one is the beginning of the other, that is the shorter one's length.
    """
    if one == other:
        return None
    shared = min(len(one), len(other))
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), shared)


class Lossless:
    """Counts identical turns over a cell's answers."""

    def __init__(self) -> None:
        self._identical = 0
        self._differences: list[int] = []

    def add(self, baseline: Sequence[Tokens], speculative: Sequence[Tokens]) -> bool:
        """Compares one conversation's turns, and says whether all of them are identical."""
        for one, other in zip(baseline, speculative, strict=False):
            at = first_difference(one, other)
            if at is not None:
                self._differences.append(at)
                return False
            self._identical += 1
        return len(baseline) == len(speculative)

    def result(self) -> dict[str, Any] | None:
        """``{identical_share, compared, identical, first_difference: {p10, p50, p90}}``, counted in turns.

        ``first_difference`` is over the turns that differ, counted in tokens from 0; None where none does.
        The whole is None where nothing was compared.
        """
        compared = self._identical + len(self._differences)
        if not compared:
            return None
        quantiles = None
        if self._differences:
            values = np.percentile(self._differences, FIRST_DIFFERENCE_PERCENTILES)
            quantiles = {f"p{p}": float(v) for p, v in zip(FIRST_DIFFERENCE_PERCENTILES, values, strict=True)}
        return {
            "identical_share": self._identical / compared,
            "compared": compared,
            "identical": self._identical,
            "first_difference": quantiles,
        }

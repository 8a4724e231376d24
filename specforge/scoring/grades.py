"""A judge's grades, averaged: in all, by turn, and by category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from specforge.scoring.score import Score


def mean_grades(scores: Iterable[tuple[str, Score]]) -> dict[str, Any] | None:
    """``mean``, ``graded`` (how many), ``by_turn`` and ``by_category``; None where nothing was graded.

    Args:
        scores: each answer's category and score.
    """
    grades: list[float] = []
    by_turn: dict[str, list[float]] = defaultdict(list)
    by_category: dict[str, list[float]] = defaultdict(list)
    for category, score in scores:
        if score.grade is None:
            continue
        grades.append(score.grade)
        by_category[category].append(score.grade)
        for turn in (score.details or {}).get("turns", ()):
            by_turn[str(turn["turn"])].append(turn["grade"])
    if not grades:
        return None
    return {
        "mean": _mean(grades),
        "graded": len(grades),
        "by_turn": {turn: _mean(values) for turn, values in sorted(by_turn.items())},
        "by_category": {category: _mean(values) for category, values in sorted(by_category.items())},
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)

"""Accuracy: the mean over prompts, with its interval, and how the wrong answers were wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from specforge.metrics.statistics import wilson_interval


def accuracy_metrics(
    row_ids: Sequence[str],
    correct: Sequence[bool | None],
    unparsed: Sequence[bool],
    truncated: Sequence[bool],
    statuses: Sequence[str],
) -> dict[str, Any]:
    """``accuracy``, ``accuracy_interval`` (95 %, Wilson, on prompts) and ``accuracy_counts``.

    Rounds are averaged within a prompt first, so that asking five times does not make an interval narrower than
    the prompts allow. Failed, truncated, unparsed and too long answers are wrong. An answer without a verdict
    (a skipped prompt, a judge's grade) does not count; all are None where none has one.

    Args:
        row_ids, correct, unparsed, truncated, statuses: one entry for a prompt in a round.
    """
    by_prompt: dict[str, list[bool]] = defaultdict(list)
    counts = {"correct": 0, "total": 0, "unparsed": 0, "truncated": 0, "failed": 0, "too_long": 0}
    for row_id, right, blank, cut, status in zip(row_ids, correct, unparsed, truncated, statuses, strict=True):
        if right is None:
            continue
        by_prompt[row_id].append(right)
        counts["correct"] += right
        counts["total"] += 1
        # Each wrong answer is counted under the first thing that went wrong with it.
        if status in ("failed", "too_long"):
            counts[status] += 1
        elif cut:
            counts["truncated"] += 1
        elif blank:
            counts["unparsed"] += 1
    if not by_prompt:
        return {"accuracy": None, "accuracy_interval": None, "accuracy_counts": None}
    right_sum = sum(sum(rounds) / len(rounds) for rounds in by_prompt.values())
    interval = wilson_interval(right_sum, len(by_prompt))
    return {
        "accuracy": right_sum / len(by_prompt),
        "accuracy_interval": None if interval is None else list(interval),
        "accuracy_counts": counts,
    }

"""Acceptance: how many tokens a verification step commits, and how many drafts were right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from specforge.metrics.requests import Floats

NOTHING_REPORTED = "the server reports no verification steps"


def acceptance_metrics(
    output_tokens: Floats,
    verify_steps: Floats,
    correct_drafts: Floats,
    proposed_drafts: Floats,
    histogram: Sequence[int] | None,
) -> dict[str, Any]:
    """The acceptance numbers over requests that report verification steps; all None where none does.

    ``acceptance_length`` is SGLang's ``spec_accept_length`` pooled over requests (token-weighted), so the first
    token, which prefill made, counts in it; ``acceptance_length_decode`` is free of that token. Correct drafts
    include those that the token limit cut off.

    Args:
        output_tokens, verify_steps, correct_drafts, proposed_drafts: one entry a request, shape [requests];
            NaN where the server reported nothing.
        histogram: histogram[i] = steps that accepted i drafts, summed over the requests; None if not reported.
    """
    verified = verify_steps > 0  # NaN compares false
    steps = verify_steps[verified]
    metrics: dict[str, Any] = dict.fromkeys(
        (
            "acceptance_length",
            "acceptance_length_decode",
            "acceptance_length_mean",
            "acceptance_rate",
            "spec_verify_ct",
            "correct_drafts",
            "proposed_drafts",
            "correct_drafts_histogram",
            "acceptance_by_position",
        )
    )
    if not steps.size:
        return metrics
    tokens, correct, proposed = output_tokens[verified], correct_drafts[verified], proposed_drafts[verified]
    metrics["spec_verify_ct"] = int(steps.sum())
    metrics["acceptance_length"] = float(tokens.sum() / steps.sum())
    metrics["acceptance_length_mean"] = float(np.mean(tokens / steps))
    if not np.isnan(correct).any():
        metrics["correct_drafts"] = int(correct.sum())
        metrics["acceptance_length_decode"] = float(1 + correct.sum() / steps.sum())
    if not np.isnan(proposed).any():
        metrics["proposed_drafts"] = int(proposed.sum())
        if metrics["correct_drafts"] is not None and proposed.sum() > 0:
            metrics["acceptance_rate"] = float(correct.sum() / proposed.sum())
    if histogram:
        metrics["correct_drafts_histogram"] = list(histogram)
        metrics["acceptance_by_position"] = acceptance_by_position(histogram)
    return metrics


def acceptance_by_position(histogram: Sequence[int]) -> dict[str, list[float | None]]:
    """How often the draft at each position was accepted, position 1 first.

    ``marginal[k]`` is the share of all steps that accepted at least k + 1 drafts; ``conditional[k]`` the share of
    those steps among the ones that had accepted k (None where none had).
    """
    at_least = np.cumsum(np.asarray(histogram, dtype=np.float64)[::-1])[::-1]
    marginal: list[float | None] = []
    conditional: list[float | None] = []
    for before, reached in pairwise(at_least):
        marginal.append(float(reached / at_least[0]) if at_least[0] else None)
        conditional.append(float(reached / before) if before else None)
    return {"marginal": marginal, "conditional": conditional}

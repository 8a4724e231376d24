"""Acceptance numbers on hand-counted requests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specforge.metrics.acceptance import acceptance_by_position, acceptance_metrics

NAN = math.nan


def of(*columns: list[float], histogram: list[int] | None = None) -> dict:
    return acceptance_metrics(*(np.array(column, dtype=float) for column in columns), histogram)


def test_the_length_is_weighted_by_tokens_and_counts_the_first_one():
    """64 tokens of which nothing was accepted took 63 steps, as SGLang reports it; 10 tokens took 3 steps."""
    metrics = of([64, 10], [63, 3], [0, 6], [189, 9])
    assert metrics["acceptance_length"] == 74 / 66
    assert metrics["acceptance_length_decode"] == 1 + 6 / 66
    assert metrics["acceptance_length_mean"] == (64 / 63 + 10 / 3) / 2
    assert metrics["acceptance_rate"] == 6 / 198
    assert (metrics["spec_verify_ct"], metrics["correct_drafts"], metrics["proposed_drafts"]) == (66, 6, 198)


def test_requests_that_were_never_verified_count_neither_tokens_nor_steps():
    metrics = of([1, 500, 7, 10], [NAN, NAN, 0, 4], [NAN, NAN, 0, 6], [NAN, NAN, 0, 12])
    assert metrics["acceptance_length"] == 10 / 4
    assert metrics["spec_verify_ct"] == 4


@pytest.mark.parametrize("steps", [[], [NAN, NAN], [0.0, 0.0]], ids=["no requests", "nothing reported", "no steps"])
def test_where_nothing_was_verified_all_is_null_never_one(steps: list[float]):
    metrics = of([5.0] * len(steps), steps, steps, steps)
    assert set(metrics.values()) == {None}
    assert len(metrics) == 9


def test_what_only_some_requests_report_is_null_and_the_rest_is_kept():
    metrics = of([10, 20], [4, 5], [6, NAN], [NAN, NAN])
    assert metrics["acceptance_length"] == 30 / 9
    assert (metrics["correct_drafts"], metrics["acceptance_length_decode"], metrics["acceptance_rate"]) == (None,) * 3


def test_positions_come_from_the_histogram():
    """Of 10 steps 4 accepted nothing, 3 one draft, 2 two and 1 three."""
    metrics = of([20], [10], [10], [30], histogram=[4, 3, 2, 1])
    assert metrics["correct_drafts_histogram"] == [4, 3, 2, 1]
    assert metrics["acceptance_by_position"] == {
        "marginal": [6 / 10, 3 / 10, 1 / 10],
        "conditional": [6 / 10, 3 / 6, 1 / 3],
    }


def test_a_position_that_no_step_reached_has_no_conditional_share():
    assert acceptance_by_position([5, 0, 0]) == {"marginal": [0.0, 0.0], "conditional": [0.0, None]}
    assert acceptance_by_position([5]) == {"marginal": [], "conditional": []}
    assert acceptance_by_position([0, 0]) == {"marginal": [None], "conditional": [None]}

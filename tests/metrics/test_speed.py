"""Throughput and latency on hand-made timelines."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specforge.metrics.speed import distribution, requests_in_flight, saturated_throughput, token_timings


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_a_distribution_is_the_mean_and_interpolated_percentiles():
    found = distribution(floats(*range(1, 101)))
    assert found == pytest.approx({"mean": 50.5, "p50": 50.5, "p90": 90.1, "p95": 95.05, "p99": 99.01})


def test_unknown_values_are_left_out_and_nothing_known_is_null():
    assert distribution(floats(1.0, math.nan, 3.0))["mean"] == 2.0  # type: ignore[index]
    assert distribution(floats(math.nan)) is None
    assert distribution(floats()) is None


def test_requests_in_flight_are_their_time_over_the_window_s():
    assert requests_in_flight(floats(0, 0, 2), floats(2, 4, 4), 0, 4) == 2.0
    assert requests_in_flight(floats(), floats(), 0, 4) is None
    assert requests_in_flight(floats(0), floats(0), 1, 1) is None


def test_saturated_throughput_leaves_out_filling_and_draining():
    """Two slots; both are busy from 1 to 5. 40 tokens in 4 s each: 10 tok/s a slot."""
    tokens, seconds = saturated_throughput(floats(0, 1, 4), floats(4, 5, 8), floats(40, 40, 40), slots=2) or (0, 0)
    assert (tokens, seconds) == (pytest.approx(30 + 40 + 10), 4.0)


def test_a_slot_that_is_filled_again_a_moment_later_counts_as_busy():
    sent, ended = floats(0, 0, 4.001, 4.002), floats(4, 4, 8, 8)
    tokens, seconds = saturated_throughput(sent, ended, floats(40, 40, 40, 40), slots=2) or (0, 0)
    assert (tokens, seconds) == (pytest.approx(160), 8.0)


@pytest.mark.parametrize("slots", [3, 4])
def test_slots_that_were_never_all_busy_give_nothing(slots: int):
    assert saturated_throughput(floats(0, 0, 5), floats(4, 4, 8), floats(9, 9, 9), slots=slots) is None


def test_time_per_output_token_is_over_the_tokens_after_the_first():
    found = token_timings(floats(0.1, 0.2, 0.3), floats(1.0, 0.0, 2.0), floats(11, 1, 21), "stream")
    assert found["tpot"]["mean"] == 0.1
    assert found["ttft"]["p50"] == 0.2
    assert (found["ttft"]["source"], found["tpot"]["source"]) == ("stream", "stream")


def test_timings_that_are_unknown_are_null():
    unknown = floats(math.nan, math.nan)
    assert token_timings(unknown, unknown, floats(5, 5), "server") == {"ttft": None, "tpot": None}

"""A cell's columns as its record's numbers, on hand-made rounds."""

from __future__ import annotations

import pytest

from specforge.metrics.aggregate import NO_ROUND, NO_USABLE_ROUND, speed_and_acceptance
from specforge.metrics.requests import PromptColumns, RoundTimes, TurnColumns, TurnSample


def turn(round_index: int, sent: float, ended: float, tokens: int, **more: float) -> TurnSample:
    return TurnSample(round_index, sent, ended, tokens, prompt_tokens=10, **more)


def two_rounds() -> TurnColumns:
    """Round 0: 30 tokens in 2 s. Round 1: 30 tokens in 4 s."""
    turns = TurnColumns()
    turns.add(turn(0, 0, 1, 10, verify_steps=4, correct_drafts=6, proposed_drafts=12), [1, 0, 3])
    turns.add(turn(0, 1, 2, 20))
    turns.add(turn(1, 10, 12, 10, verify_steps=5, correct_drafts=5, proposed_drafts=15, cached_tokens=5), [0, 5, 0, 0])
    turns.add(turn(1, 12, 14, 20, cached_tokens=0))
    turns.add_gap(0, 0.01, 1)
    turns.add_gap(1, 0.03, 1)
    return turns


def both(usable: bool = True) -> dict[int, RoundTimes]:
    return {0: RoundTimes(0, 2, usable), 1: RoundTimes(10, 14, True)}


def test_throughput_is_all_tokens_over_all_windows():
    metrics = speed_and_acceptance(two_rounds(), both(), 1, "server")
    assert metrics["output_throughput"] == 60 / 6
    assert metrics["request_throughput"] == 4 / 6
    assert metrics["duration"] == 6
    assert metrics["requests_in_flight"] == 1.0
    assert metrics["output_throughput_saturated"] == pytest.approx(10)
    assert metrics["latency"]["p50"] == 1.5
    assert [round_["output_throughput"] for round_ in metrics["rounds"]] == [15, 7.5]
    assert [round_["latency_p50"] for round_ in metrics["rounds"]] == [1, 2]


def test_a_spoilt_round_counts_for_everything_but_speed():
    metrics = speed_and_acceptance(two_rounds(), both(usable=False), 1, "server")
    assert metrics["output_throughput"] == 30 / 4
    assert metrics["latency"]["p50"] == 2
    assert metrics["itl"]["mean"] == 0.03
    assert (metrics["output_tokens"], metrics["requests"]) == (60, 4)
    assert metrics["acceptance_length"] == 20 / 9
    assert [round_["output_throughput"] for round_ in metrics["rounds"]] == [None, 7.5]
    assert [round_["acceptance_length"] for round_ in metrics["rounds"]] == [2.5, 2]


def test_without_a_usable_round_speed_is_null_with_the_reason():
    spoilt = {0: RoundTimes(0, 2, False), 1: RoundTimes(10, 14, False)}
    for rounds, why in ((spoilt, NO_USABLE_ROUND), ({}, NO_ROUND)):
        metrics = speed_and_acceptance(two_rounds(), rounds, 1, "server")
        for name in ("output_throughput", "request_throughput", "duration", "latency"):
            assert metrics[name] is None
            assert metrics["reasons"][name] == why
        assert (metrics["requests_in_flight"], metrics["itl"]) == (None, None)
        assert metrics["reasons"]["ttft"] == why


def test_histograms_of_all_rounds_are_pooled_whatever_their_lengths():
    metrics = speed_and_acceptance(two_rounds(), both(), 1, "server")
    assert metrics["correct_drafts_histogram"] == [1, 5, 3, 0]


def test_the_cached_share_is_over_the_requests_that_report_one():
    metrics = speed_and_acceptance(two_rounds(), both(), 1, "server")
    assert metrics["cached_token_share"] == 5 / 20
    assert speed_and_acceptance(TurnColumns(), {}, 1, "server")["cached_token_share"] is None


def test_an_open_loop_has_no_slots_to_saturate():
    assert speed_and_acceptance(two_rounds(), both(), None, "server")["output_throughput_saturated"] is None


def test_a_dropped_round_leaves_nothing_behind():
    turns = two_rounds()
    turns.drop_round(0)
    metrics = speed_and_acceptance(turns, {1: RoundTimes(10, 14, True)}, 1, "server")
    assert (metrics["output_tokens"], metrics["requests"]) == (30, 2)
    assert metrics["correct_drafts_histogram"] == [0, 5, 0, 0]
    assert metrics["itl"]["mean"] == 0.03
    prompts = PromptColumns(row_id=["a", "a"], round=[0, 1])
    for name in prompts.__dataclass_fields__:
        if not getattr(prompts, name):
            setattr(prompts, name, [0, 1])
    prompts.drop_round(0)
    assert (prompts.row_id, prompts.round, prompts.retries) == (["a"], [1], [1])

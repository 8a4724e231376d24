"""Accuracy over prompts, and the kinds of wrong answers."""

from __future__ import annotations

from specforge.metrics.accuracy import accuracy_metrics
from specforge.metrics.statistics import wilson_interval


def test_rounds_are_averaged_within_a_prompt_before_prompts_are():
    """One prompt asked three times and right once, another asked once and right."""
    metrics = accuracy_metrics(["a", "a", "a", "b"], [True, False, False, True], [False] * 4, [False] * 4, ["ok"] * 4)
    assert metrics["accuracy"] == (1 / 3 + 1) / 2
    assert metrics["accuracy_interval"] == list(wilson_interval(4 / 3, 2) or ())
    assert metrics["accuracy_counts"]["total"] == 4


def test_asking_more_often_makes_no_interval_narrower():
    def interval(rounds: int) -> list[float]:
        ids = ["a", "b", "c", "d"] * rounds
        right = [True, True, False, True] * rounds
        none = [False] * len(ids)
        return list(accuracy_metrics(ids, right, none, none, ["ok"] * len(ids))["accuracy_interval"])

    assert interval(1) == interval(5)


def test_each_wrong_answer_is_counted_under_the_first_thing_that_went_wrong():
    metrics = accuracy_metrics(
        ["right", "wrong", "blank", "cut", "failed", "long"],
        [True, False, False, False, False, False],
        [False, False, True, True, True, True],
        [False, False, False, True, True, False],
        ["ok", "ok", "ok", "ok", "failed", "too_long"],
    )
    assert metrics["accuracy"] == 1 / 6
    assert metrics["accuracy_counts"] == {
        "correct": 1,
        "total": 6,
        "unparsed": 1,
        "truncated": 1,
        "failed": 1,
        "too_long": 1,
    }


def test_answers_without_a_verdict_do_not_count():
    some = accuracy_metrics(["a", "b"], [True, None], [False] * 2, [False] * 2, ["ok", "skipped"])
    assert (some["accuracy"], some["accuracy_counts"]["total"]) == (1.0, 1)
    none = accuracy_metrics(["a"], [None], [False], [False], ["ok"])
    assert none == {"accuracy": None, "accuracy_interval": None, "accuracy_counts": None}

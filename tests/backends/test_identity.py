"""Telling the server that was asked for from another one, and a batch that fits from one that queues."""

from __future__ import annotations

from typing import Any

import pytest

from specforge.backends.identity import capacity_warning, mismatches
from specforge.backends.options import LaunchOptions
from specforge.matrix import SpecConfig

OPTIONS = LaunchOptions(model_path="org/model", speculative_draft_model_path="org/draft")
CHAIN = SpecConfig.parse("1,3,1,4")
TARGET = SpecConfig.parse("1,0,0,0")
NGRAM = SpecConfig.parse("1,0,0,8")


def info(**changed: Any) -> dict[str, Any]:
    """What a server of ``CHAIN`` reports, but for what is changed."""
    return {
        "model_path": "org/model",
        "random_seed": 42,
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": "org/draft",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
        **changed,
    }


PLAIN = {name: None for name in info() if name.startswith("speculative")}


def test_the_server_that_was_asked_for_passes():
    assert mismatches(CHAIN, OPTIONS, info()) == []


@pytest.mark.parametrize(
    "name, reported",
    [
        ("model_path", "org/stale"),
        ("model_path", None),
        ("random_seed", 7),
        ("speculative_algorithm", None),
        ("speculative_algorithm", "EAGLE"),
        ("speculative_draft_model_path", "org/other"),
        ("speculative_num_steps", 5),
        ("speculative_eagle_topk", 2),
        ("speculative_num_draft_tokens", 6),
    ],
)
def test_each_setting_that_differs_is_named_with_what_was_found(name: str, reported: object):
    (found,) = mismatches(CHAIN, OPTIONS, info(**{name: reported}))
    assert found.startswith(f"{name}: {reported!r}, asked ")


def test_every_difference_is_listed():
    assert len(mismatches(CHAIN, OPTIONS, info(model_path="x", random_seed=1, speculative_num_steps=2))) == 3


def test_a_plain_server_passes_for_target_only():
    assert mismatches(TARGET, OPTIONS, info(**PLAIN)) == []


def test_a_speculative_server_does_not_pass_for_target_only():
    assert mismatches(TARGET, OPTIONS, info()) == ["speculative_algorithm: 'EAGLE3', asked None"]


def test_ngrams_own_topk_and_steps_are_not_compared():
    reported = info(
        speculative_algorithm="NGRAM",
        speculative_draft_model_path=None,
        speculative_num_steps=0,
        speculative_eagle_topk=10,
        speculative_num_draft_tokens=8,
    )
    assert mismatches(NGRAM, OPTIONS, reported) == []


def test_ngrams_draft_tokens_are_compared():
    reported = info(speculative_algorithm="NGRAM", speculative_num_draft_tokens=12)
    assert mismatches(NGRAM, OPTIONS, reported) == ["speculative_num_draft_tokens: 12, asked 8"]


def test_nextn_may_be_reported_as_eagle():
    asked = LaunchOptions(model_path="org/model", speculative_algorithm="nextn")
    assert mismatches(CHAIN, asked, info(speculative_algorithm="EAGLE")) == []


@pytest.mark.parametrize(
    "reported", ["org/model/", "/cache/hub/models--org--model/snapshots/0123abcd", "./x/../org/model"]
)
def test_a_model_may_be_reported_as_what_it_resolved_to(reported: str):
    assert mismatches(CHAIN, OPTIONS, info(model_path=reported)) == []


def test_a_setting_that_is_not_reported_is_passed_over():
    reported = info()
    del reported["random_seed"], reported["speculative_num_steps"]
    assert mismatches(CHAIN, OPTIONS, reported) == []


def capacity(per_rank: object, ranks: object = 1) -> dict[str, Any]:
    return {"dp_size": ranks, "internal_states": [{"effective_max_running_requests_per_dp": per_rank}]}


def test_a_batch_beyond_the_servers_capacity_is_warned_of():
    warning = capacity_warning(SpecConfig.parse("17,0,0,0"), capacity(8, 2))
    assert warning is not None
    assert "17 requests in flight are more than the 16" in warning


@pytest.mark.parametrize("reported", [capacity(8, 2), capacity(64), None, {}, {"internal_states": []}, capacity(None)])
def test_a_batch_that_fits_or_a_server_that_does_not_say_gives_no_warning(reported: dict[str, Any] | None):
    assert capacity_warning(SpecConfig.parse("16,0,0,0"), reported) is None

"""Sampling parameters and the choice of tokens."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specforge.engine.sampling import Draw, SamplingParams, choose
from specforge.errors import RequestError

LOGITS = np.log(np.array([0.4, 0.3, 0.2, 0.1], np.float32))


def draw(index: int = 0, **given: Any) -> Draw:
    return Draw(SamplingParams.parse(given, 4), 7, index, (), Counter(), frozenset({0}))


def shares(**given: Any) -> list[float]:
    """How often each of the four tokens is drawn."""
    drawn = Counter(choose(LOGITS, draw(index, **given)) for index in range(4000))
    return [drawn[token] / 4000 for token in range(4)]


def test_greedy_takes_the_largest_logit() -> None:
    assert choose(LOGITS, draw(temperature=0)) == 0
    assert choose(LOGITS, draw(temperature=3.0, top_k=1)) == 0


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, [0.4, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        ({"top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_p": 0.6}, [4 / 7, 3 / 7, 0, 0]),
        ({"min_p": 0.45}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"top_k": 3, "top_p": 0.5}, [4 / 7, 3 / 7, 0, 0]),
    ],
)
def test_tokens_are_drawn_with_their_probability(given: dict[str, Any], expected: list[float]) -> None:
    # Four standard errors of a share out of 4000.
    assert shares(**given) == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(4000))


def test_a_draw_depends_on_seed_and_index_alone() -> None:
    first = [choose(LOGITS, draw(index)) for index in range(50)]
    assert [choose(LOGITS, draw(index)) for index in range(50)] == first
    assert [choose(LOGITS, replace(draw(index), seed=8)) for index in range(50)] != first


def test_a_repetition_penalty_lowers_what_was_seen() -> None:
    logits = np.array([2.0, 1.9, -1.0], np.float32)
    params = SamplingParams.parse({"temperature": 0, "repetition_penalty": 1.5}, 3)
    assert choose(logits, Draw(params, 0, 0, (0,), Counter(), frozenset())) == 1
    assert choose(logits, Draw(params, 0, 1, (), Counter({0: 1, 1: 1}), frozenset())) == 0


def test_a_frequency_penalty_counts_and_a_presence_penalty_does_not() -> None:
    logits = np.array([2.0, 1.0], np.float32)
    frequency = SamplingParams.parse({"temperature": 0, "frequency_penalty": 0.6}, 2)
    presence = SamplingParams.parse({"temperature": 0, "presence_penalty": 0.6}, 2)
    twice = Counter({0: 2})
    assert choose(logits, Draw(frequency, 0, 2, (), twice, frozenset())) == 1
    assert choose(logits, Draw(presence, 0, 2, (), twice, frozenset())) == 0


def test_eos_waits_for_the_minimum_length() -> None:
    params = {"temperature": 0, "min_new_tokens": 2}
    assert [choose(LOGITS, draw(index, **params)) for index in (0, 1, 2)] == [1, 1, 0]


def test_a_bias_can_forbid_and_force() -> None:
    assert choose(LOGITS, draw(temperature=0, logit_bias={"0": -100, "3": 50})) == 3


@pytest.mark.parametrize(
    "given, reason",
    [
        ({"temperature": -1}, "temperature must be a non-negative finite number, got -1."),
        ({"temperature": float("nan")}, "temperature must be a non-negative finite number, got nan."),
        ({"top_p": 0}, "top_p must be in (0, 1], got 0."),
        ({"top_k": 0}, "top_k must be -1 (disable) or at least 1, got 0."),
        ({"min_p": 2}, "min_p must be in [0, 1], got 2."),
        ({"repetition_penalty": 3}, "repetition_penalty must be in (0, 2] (1.0 = no penalty), got 3."),
        ({"max_new_tokens": -1}, "max_new_tokens must be at least 0, got -1."),
        ({"max_new_tokens": 1, "min_new_tokens": 2}, "min_new_tokens must be in [0, max_new_tokens(1)], got 2."),
        ({"n": 0}, "n must be in [1, 128], got 0."),
        ({"logit_bias": {"9": 1.0}}, "logit_bias must have keys in [0, 3], got 9."),
        ({"sampling_seed": 2**63}, "sampling_seed must be in [-2**63, 2**63 - 1], got 9223372036854775808."),
        ({"temperature": "hot"}, "invalid type: temperature is 'hot'"),
        ({"stop": [1]}, "invalid type: stop is [1]"),
        ({"max_new_tokens": 1.5}, "invalid type: max_new_tokens is 1.5"),
        ({"ignore_eos": 1}, "invalid type: ignore_eos is 1"),
        ({"json_schema": "{}"}, "json_schema is not supported by the embedded engine."),
    ],
)
def test_absurd_parameters_are_refused_with_the_reason(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(RequestError) as refused:
        SamplingParams.parse(given, 4)
    assert str(refused.value) == reason


def test_an_unknown_parameter_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match="unknown field `nonsense`, expected one of "):
        SamplingParams.parse({"nonsense": 1}, 4)


def test_null_means_the_default() -> None:
    assert SamplingParams.parse({"temperature": None, "stop": None}, 4) == SamplingParams()
    assert SamplingParams.parse({"max_new_tokens": None}, 4).max_new_tokens is None


def test_copies_of_a_seeded_request_have_seeds_of_their_own() -> None:
    params = SamplingParams(sampling_seed=5)
    assert [params.for_copy(copy).sampling_seed for copy in range(3)] == [5, 6, 7]
    assert SamplingParams().for_copy(2).sampling_seed is None

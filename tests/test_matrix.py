"""Configurations and benchmark specs: their text forms, and what is refused."""

from __future__ import annotations

import pytest

from specforge.errors import UsageError
from specforge.matrix import (
    DEFAULT_BENCHMARKS,
    DEFAULT_CONFIGS,
    BenchmarkSpec,
    SpecConfig,
    parse_benchmarks,
    parse_configs,
    tree_capacity,
)


@pytest.mark.parametrize(
    "text, config, written",
    [
        ("1,0,0,0", SpecConfig(1, 0, 0, 0), "1,0,0,0"),
        ("64,5,4,16", SpecConfig(64, 5, 4, 16), "64,5,4,16"),
        (" 2, 3, 2 ,8 ", SpecConfig(2, 3, 2, 8), "2,3,2,8"),
        ("1,0,0,12", SpecConfig(1, 0, 0, 12), "1,0,0,12"),
        ("1,3,1,9", SpecConfig(1, 3, 1, 4), "1,3,1,4"),
        ("1,3,1,0", SpecConfig(1, 3, 1, 4), "1,3,1,4"),
        ("8,1,8,9", SpecConfig(8, 1, 8, 9), "8,1,8,9"),
    ],
)
def test_a_configuration_is_read_normalised_and_written(text: str, config: SpecConfig, written: str):
    assert SpecConfig.parse(text) == config
    assert str(config) == written
    assert SpecConfig.parse(written) == config


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "four non-negative integers"),
        ("1,0,0", "four non-negative integers"),
        ("1,0,0,0,0", "four non-negative integers"),
        ("1;0;0;0", "four non-negative integers"),
        ("1,0,0,-1", "four non-negative integers"),
        ("1,0,0,1.5", "four non-negative integers"),
        ("1,0,0,²", "four non-negative integers"),
        ("1,0,0,\u0664", "four non-negative integers"),
        ("0,0,0,0", "batch size must be at least 1"),
        ("1,0,1,0", "topk without steps"),
        ("1,2,0,3", "steps need a topk"),
        ("1,2,2,1", "counts the root"),
        ("1,2,2,8", r"at most topk \+ \(steps - 1\) \* topk\*\*2 \+ 1 = 7"),
    ],
)
def test_what_is_no_configuration_is_refused_with_the_flag_and_the_text(text: str, why: str):
    with pytest.raises(UsageError, match=why) as refused:
        SpecConfig.parse(text)
    assert str(refused.value).startswith(f"--config-list: {text!r}")
    assert "\n" not in str(refused.value)


def test_the_largest_tree_that_fits_is_taken():
    assert tree_capacity(2, 2) == 6
    assert SpecConfig.parse("1,2,2,7").num_draft_tokens == 7


def test_only_what_drafts_nothing_is_the_target_alone():
    assert [SpecConfig.parse(text).is_target_only for text in ("4,0,0,0", "4,0,0,8", "4,3,1,4")] == [True, False, False]
    assert SpecConfig.parse("4,3,1,4").baseline == SpecConfig(4, 0, 0, 0)


@pytest.mark.parametrize(
    "text, spec, written",
    [
        ("mtbench", BenchmarkSpec("mtbench"), "mtbench"),
        ("GSM8K:5", BenchmarkSpec("gsm8k", 5), "gsm8k:5"),
        ("ceval:5:accountant", BenchmarkSpec("ceval", 5, ("accountant",)), "ceval:5:accountant"),
        ("ceval::a, b,a", BenchmarkSpec("ceval", None, ("a", "b")), "ceval::a,b"),
        ("mt-bench:1:", BenchmarkSpec("mt-bench", 1), "mt-bench:1"),
    ],
)
def test_a_benchmark_spec_is_read_and_written(text: str, spec: BenchmarkSpec, written: str):
    assert BenchmarkSpec.parse(text) == spec
    assert str(spec) == written
    assert BenchmarkSpec.parse(written) == spec


@pytest.mark.parametrize("text", ["", ":5", "gsm8k:0", "gsm8k:-1", "gsm8k:five", "a b:1", "ceval:5:a,,b", "ceval:5:,"])
def test_what_is_no_benchmark_spec_is_refused_with_the_flag_and_the_text(text: str):
    with pytest.raises(UsageError) as refused:
        BenchmarkSpec.parse(text)
    assert str(refused.value).startswith(f"--benchmark-list: {text!r}")
    assert "\n" not in str(refused.value)


def test_what_comes_twice_is_kept_once_in_the_place_of_the_first():
    assert parse_configs(["1,3,1,4", "1,0,0,0", "1,3,1,7"]) == [SpecConfig(1, 3, 1, 4), SpecConfig(1, 0, 0, 0)]
    assert parse_benchmarks(["gsm8k:5", "mtbench", "GSM8K:5"]) == [BenchmarkSpec("gsm8k", 5), BenchmarkSpec("mtbench")]


def test_the_defaults_are_what_they_say():
    assert [str(config) for config in parse_configs(DEFAULT_CONFIGS)] == list(DEFAULT_CONFIGS)
    assert [str(spec) for spec in parse_benchmarks(DEFAULT_BENCHMARKS)] == list(DEFAULT_BENCHMARKS)

"""The rows that the project ships: they load as the Hub's do, and their references are right."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from specforge.datasets import LoadOptions, known_names, load
from specforge.matrix import BenchmarkSpec


def sample(name: str) -> list[dict[str, Any]]:
    text = resources.files("specforge.datasets").joinpath(f"samples/{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", known_names())
def test_every_sample_row_becomes_a_prompt(name: str) -> None:
    benchmark = load(BenchmarkSpec.parse(name), LoadOptions(samples=True))
    assert len(benchmark.prompts) == len(sample(name))
    assert benchmark.source.kind == "sample"
    assert all(prompt.reference is not None for prompt in benchmark.prompts) or name == "mtbench"


@pytest.mark.parametrize("name", known_names())
def test_a_dataset_has_at_least_four_sample_rows_and_most_have_ten(name: str) -> None:
    assert len(sample(name)) >= (4 if name == "mmstar" else 10)


def test_mtbench_samples_have_a_second_turn() -> None:
    prompts = load(BenchmarkSpec.parse("mtbench"), LoadOptions(samples=True)).prompts
    assert all(len(prompt.followups) == 1 for prompt in prompts)

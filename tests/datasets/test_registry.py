from __future__ import annotations

import pytest

from specforge.datasets import find, known_names, resolve
from specforge.errors import UsageError
from specforge.matrix import BenchmarkSpec

NAMES = [
    "aime",
    "ceval",
    "financeqa",
    "gpqa",
    "gsm8k",
    "humaneval",
    "livecodebench",
    "math500",
    "mbpp",
    "mmlu",
    "mmstar",
    "mtbench",
    "simpleqa",
]


def spec(text: str) -> BenchmarkSpec:
    return BenchmarkSpec.parse(text)


def test_the_thirteen_datasets_are_known() -> None:
    assert known_names() == NAMES


@pytest.mark.parametrize(
    "alias,name", [("mt-bench", "mtbench"), ("MT_Bench", "mtbench"), ("math-500", "math500"), ("lcb", "livecodebench")]
)
def test_an_alias_finds_its_dataset(alias: str, name: str) -> None:
    assert find(alias).name == name


def test_an_unknown_dataset_is_told_with_the_nearest_name_and_all_names() -> None:
    with pytest.raises(UsageError, match=r"--benchmark-list.*'gsm9k'.*did you mean gsm8k.*mtbench"):
        resolve(spec("gsm9k:5"))


def test_an_unknown_dataset_far_from_every_name_gets_no_guess() -> None:
    with pytest.raises(UsageError) as raised:
        resolve(spec("zzzzzz"))
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "ceval:5:accountant",
        "ceval:5:Tax Accountant",
        "mmlu:5:stem",
        "mmlu:5:high school physics,virology",
        "gpqa:5:main",
        "aime:5:2025",
        "mtbench:8:writing,stem",
        "mmstar:5:fine-grained perception",
        "livecodebench:5:hard",
        "livecodebench:5:release_v3",
        "math500:5:level 5",
        "math500:5:5",
        "math500:5:counting & probability",
    ],
)
def test_subsets_are_known_however_they_are_spelled(text: str) -> None:
    resolve(spec(text))


@pytest.mark.parametrize(
    "text,known",
    [
        ("ceval:5:acountant", "did you mean 'accountant'"),
        ("mmlu:5:college_biologie", "did you mean 'college_biology'"),
        ("gpqa:5:platinum", "known: diamond, main, extended"),
        ("aime:5:1901", "known: 2024, 2025"),
        ("livecodebench:5:v9", "release_v6"),
        ("math500:5:topology", "known: Algebra"),
    ],
)
def test_an_unknown_subset_is_told_with_the_known_ones(text: str, known: str) -> None:
    with pytest.raises(UsageError, match=known):
        resolve(spec(text))


def test_a_dataset_without_subsets_takes_none() -> None:
    with pytest.raises(UsageError, match="gsm8k has no subsets; found 'hard'"):
        resolve(spec("gsm8k:5:hard"))


def test_ceval_has_its_52_subjects_and_mmlu_its_57() -> None:
    assert len(find("ceval").parts) == 52
    assert len(find("mmlu").axes[0].values or ()) == 57

from __future__ import annotations

from pathlib import Path

import pytest

from specforge.datasets import LoadOptions, parse_dataset_paths
from specforge.errors import UsageError


def test_names_and_few_shot_names_are_read(tmp_path: Path) -> None:
    questions, examples = tmp_path / "test.jsonl", tmp_path / "train.jsonl"
    questions.touch()
    examples.touch()
    found = parse_dataset_paths([f"GSM8K={questions}", f"gsm8k.train={examples}", f"mt-bench={tmp_path}"])
    assert found == {"gsm8k": str(questions), "gsm8k.train": str(examples), "mtbench": str(tmp_path)}


def test_a_path_may_hold_an_equals_sign(tmp_path: Path) -> None:
    file = tmp_path / "a=b.jsonl"
    file.touch()
    assert parse_dataset_paths([f"gsm8k={file}"]) == {"gsm8k": str(file)}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--dataset-path.*there is no file or folder.*nowhere\.jsonl"):
        parse_dataset_paths([f"gsm8k={tmp_path / 'nowhere.jsonl'}"])


def test_an_unknown_dataset_is_told_under_this_flag(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--dataset-path: unknown dataset 'gsm8'; did you mean gsm8k"):
        parse_dataset_paths([f"gsm8={tmp_path}"])


@pytest.mark.parametrize("text", ["gsm8k", "gsm8k=", "=file", ""])
def test_another_shape_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not NAME=FILE"):
        parse_dataset_paths([text])


def test_a_dataset_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mtbench is named twice"):
        parse_dataset_paths([f"mtbench={tmp_path}", f"mt-bench={tmp_path}"])


def test_few_shot_rows_for_a_dataset_without_examples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="math500 takes no few-shot examples"):
        parse_dataset_paths([f"math500.train={tmp_path}"])


@pytest.mark.parametrize(
    "revision,expected",
    [(None, None), ("abc", "abc"), ("mtbench=abc", None), ("mtbench=abc, gsm8k = def", "def"), ("mt-bench=x", None)],
)
def test_a_revision_is_for_all_or_for_named_datasets(revision: str | None, expected: str | None) -> None:
    assert LoadOptions(revision=revision).revision_of("gsm8k") == expected

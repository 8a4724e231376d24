from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specforge.datasets import Benchmark, LoadOptions, find, load, parse_dataset_paths, read_rows
from specforge.errors import DatasetError, UsageError
from specforge.matrix import BenchmarkSpec


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sums(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"question": f"What is {n} + 1?", "answer": f"{n}+1=<<{n}+1={n + 1}>>{n + 1}\n#### {n + 1}"}
        for n in range(start, start + count)
    ]


def loaded(spec: str, *paths: str, **options: Any) -> Benchmark:
    return load(BenchmarkSpec.parse(spec), LoadOptions(dataset_paths=parse_dataset_paths(paths), **options))


def row_ids(benchmark: Benchmark) -> list[str]:
    return [prompt.row_id for prompt in benchmark.prompts]


def test_a_smaller_draw_is_a_prefix_of_a_larger_one(tmp_path: Path) -> None:
    path = f"gsm8k={write(tmp_path / 'test.jsonl', sums(50))}"
    whole = row_ids(loaded("gsm8k", path))
    assert [row_ids(loaded(f"gsm8k:{n}", path)) for n in (1, 7, 49)] == [whole[:1], whole[:7], whole[:49]]


def test_the_draw_does_not_depend_on_the_files_order(tmp_path: Path) -> None:
    rows = sums(30)
    one = loaded("gsm8k:9", f"gsm8k={write(tmp_path / 'a.jsonl', rows)}")
    other = loaded("gsm8k:9", f"gsm8k={write(tmp_path / 'b.jsonl', rows[::-1])}")
    assert row_ids(one) == row_ids(other)


def test_the_draw_is_the_same_on_every_platform(tmp_path: Path) -> None:
    path = f"gsm8k={write(tmp_path / 'test.jsonl', sums(100))}"
    assert [prompt.index for prompt in loaded("gsm8k:6", path).prompts] == [46, 17, 54, 26, 97, 85]


def test_an_index_is_the_rows_number_in_the_file(tmp_path: Path) -> None:
    rows = sums(20)
    benchmark = loaded("gsm8k:20", f"gsm8k={write(tmp_path / 'test.jsonl', rows)}")
    assert all(rows[p.index]["question"] in str(p.messages[-1]["content"]) for p in benchmark.prompts)


def test_warm_up_prompts_are_not_measured(tmp_path: Path) -> None:
    benchmark = loaded("gsm8k:10", f"gsm8k={write(tmp_path / 'test.jsonl', sums(40))}", warmup=16)
    warmup = [prompt.row_id for prompt in benchmark.warmup]
    assert len(warmup) == 16
    assert not set(warmup) & set(row_ids(benchmark))


def test_where_all_rows_are_measured_they_warm_up_as_well(tmp_path: Path) -> None:
    benchmark = loaded("gsm8k", f"gsm8k={write(tmp_path / 'test.jsonl', sums(4))}")
    assert benchmark.warmup == benchmark.prompts


def test_more_prompts_than_rows_takes_all_and_says_so(tmp_path: Path) -> None:
    benchmark = loaded("gsm8k:500", f"gsm8k={write(tmp_path / 'test.jsonl', sums(4))}")
    assert len(benchmark.prompts) == 4
    assert benchmark.notes == ("gsm8k:500: asked for 500 prompts, there are 4; all are taken",)


def test_a_folders_train_split_gives_the_few_shot_examples(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl", sums(5))
    write(tmp_path / "train.jsonl", sums(9, start=100))
    benchmark = loaded("gsm8k:2", f"gsm8k={tmp_path}")
    assert benchmark.source.few_shot == "5 from train"
    messages = benchmark.prompts[0].messages
    assert [message["role"] for message in messages] == ["user", "assistant"] * 5 + ["user"]
    assert str(messages[0]["content"]).startswith("What is 100 + 1?")
    assert messages[1]["content"] == "100+1=101\nThe final answer is \\boxed{101}."


def test_a_file_without_a_train_file_is_asked_zero_shot(tmp_path: Path) -> None:
    benchmark = loaded("gsm8k:2", f"gsm8k={write(tmp_path / 'test.jsonl', sums(5))}")
    assert benchmark.source.few_shot is None
    assert len(benchmark.prompts[0].messages) == 1


def test_the_number_of_examples_can_be_set(tmp_path: Path) -> None:
    paths = (
        f"gsm8k={write(tmp_path / 'q.jsonl', sums(5))}",
        f"gsm8k.train={write(tmp_path / 'e.jsonl', sums(9, start=100))}",
    )
    assert len(loaded("gsm8k:1", *paths, few_shot=8).prompts[0].messages) == 17
    assert len(loaded("gsm8k:1", *paths, few_shot=0).prompts[0].messages) == 1
    with pytest.raises(DatasetError, match="12 few-shot examples asked for, train has 9"):
        loaded("gsm8k:1", *paths, few_shot=12)


def test_examples_asked_for_but_not_given_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"--dataset-path gsm8k\.train=FILE"):
        loaded("gsm8k:1", f"gsm8k={write(tmp_path / 'q.jsonl', sums(5))}", few_shot=3)


def test_a_file_of_another_dataset_is_told_by_its_columns(tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [{"prompt": "a", "test": "b"}])
    with pytest.raises(DatasetError, match=r"gsm8k: .*x\.jsonl, row 0: no column 'question'; found prompt, test"):
        loaded("gsm8k", f"gsm8k={file}")


def test_a_malformed_row_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [*sums(1), {"question": "What?", "answer": "no mark"}])
    with pytest.raises(DatasetError, match=r"x\.jsonl, row 1: the answer has no final number behind '####'"):
        loaded("gsm8k", f"gsm8k={file}")


def test_a_reference_outside_the_options_is_the_datasets_fault(tmp_path: Path) -> None:
    row = {"question": "Which?", "subject": "anatomy", "choices": ["x", "y"], "answer": 2}
    with pytest.raises(DatasetError, match="row 0: the reference 2 is none of the 2 options"):
        loaded("mmlu", f"mmlu={write(tmp_path / 'x.jsonl', [row])}")


def test_rows_with_the_same_question_keep_apart(tmp_path: Path) -> None:
    assert len(set(row_ids(loaded("gsm8k", f"gsm8k={write(tmp_path / 'x.jsonl', sums(1) * 3)}")))) == 3


def test_a_subset_that_the_file_lacks_lists_those_it_has(tmp_path: Path) -> None:
    row = {"question": "Which?", "subject": "anatomy", "choices": ["x", "y"], "answer": 0}
    with pytest.raises(UsageError, match="mmlu has no subject 'virology'; known: anatomy"):
        loaded("mmlu:1:virology", f"mmlu={write(tmp_path / 'x.jsonl', [row])}")


def test_a_subset_that_nothing_in_the_file_tells_is_an_error(tmp_path: Path) -> None:
    row = {"ID": "60", "Problem": "What?", "Answer": 5}
    with pytest.raises(DatasetError, match=r"nothing in .* says which rows are '2025'"):
        loaded("aime:1:2025", f"aime={write(tmp_path / 'x.jsonl', [row])}")


def test_a_files_name_tells_its_subset(tmp_path: Path) -> None:
    row = {"ID": "60", "Problem": "What?", "Answer": 5}
    benchmark = loaded("aime:1:2025", f"aime={write(tmp_path / 'aime_2025.jsonl', [row])}")
    assert (benchmark.prompts[0].subset, benchmark.prompts[0].row_id) == ("2025", "2025-60")


def test_a_folder_of_subjects_is_told_apart_by_its_files(tmp_path: Path) -> None:
    row = {"question": "哪个？", "A": "1", "B": "2", "C": "3", "D": "4", "answer": "B"}
    for subject in ("law", "tax_accountant", "accountant"):
        write(tmp_path / "val" / f"{subject}_val.jsonl", [{"id": 0, **row}])
    benchmark = loaded("ceval:9:accountant,law", f"ceval={tmp_path}")
    assert sorted(row_ids(benchmark)) == ["accountant/0", "law/0"]


def test_the_local_path_is_recorded_with_its_hash(tmp_path: Path) -> None:
    file = write(tmp_path / "test.jsonl", sums(2))
    source = loaded("gsm8k", f"gsm8k={file}").source
    assert (source.kind, source.location, source.revision, source.split) == ("file", str(file), None, "test")
    assert len(source.sha256 or "") == 64


def test_samples_are_used_where_they_are_asked_for_and_named_so() -> None:
    source = load(BenchmarkSpec.parse("gsm8k:3"), LoadOptions(samples=True)).source
    assert (source.kind, source.revision) == ("sample", None)


def test_a_local_path_goes_before_the_samples(tmp_path: Path) -> None:
    assert loaded("gsm8k", f"gsm8k={write(tmp_path / 'x.jsonl', sums(2))}", samples=True).source.kind == "file"


def test_reading_alone_renders_nothing(tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [{"question": "What?", "answer": "no mark"}])
    options = LoadOptions(dataset_paths=parse_dataset_paths([f"gsm8k={file}"]))
    assert len(read_rows(find("gsm8k"), options).questions) == 1

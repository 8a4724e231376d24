from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest

from specforge.datasets import find
from specforge.datasets.definition import HubPart
from specforge.datasets.files import read_path
from specforge.errors import DatasetError

TEST = (HubPart("x/y", "test", config="main"),)
ROWS = [{"question": "Größe?", "answer": "1"}, {"question": 'a, "b"\nc', "answer": "2"}]


def write(path: Path, rows: list[dict[str, str]] = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_each_format_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    (part,) = read_path(write(tmp_path / f"test{suffix}"), TEST).parts
    assert [dict(row) for row in part.rows] == ROWS


def test_the_hash_is_that_of_the_files_bytes(tmp_path: Path) -> None:
    file = write(tmp_path / "test.jsonl")
    assert read_path(file, TEST).sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_hash_of_several_files_is_that_of_their_listing(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test-{shard}.jsonl") for shard in (0, 1)]
    listing = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    assert read_path(tmp_path, TEST).sha256 == hashlib.sha256(listing.encode()).hexdigest()


@pytest.mark.parametrize(
    "name", ["test.jsonl", "sanitized-test.jsonl", "main/test-00000-of-00001.parquet", "test/x.csv", "law_test.csv"]
)
def test_a_folder_gives_the_files_that_name_the_split(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    write(tmp_path / "train.jsonl", [{"question": "other", "answer": "0"}])
    (part,) = read_path(tmp_path, TEST).parts
    assert part.path == tmp_path / name


def test_a_word_that_only_contains_the_split_does_not_name_it(tmp_path: Path) -> None:
    write(tmp_path / "latest.jsonl")
    write(tmp_path / "other.jsonl")
    with pytest.raises(DatasetError, match=r"none of its 2 files names the split 'test' \(latest.jsonl, other.jsonl\)"):
        read_path(tmp_path, TEST)


def test_the_only_file_of_a_folder_needs_no_split_in_its_name(tmp_path: Path) -> None:
    write(tmp_path / "question.jsonl")
    assert len(read_path(tmp_path, (HubPart("x/y", "train"),)).parts) == 1


def test_hidden_files_are_not_read(tmp_path: Path) -> None:
    write(tmp_path / ".cache" / "test.jsonl")
    write(tmp_path / "test.jsonl")
    assert [part.path for part in read_path(tmp_path, TEST).parts] == [tmp_path / "test.jsonl"]


def test_the_longest_subset_in_a_files_name_is_its_label(tmp_path: Path) -> None:
    labels = ("accountant", "tax_accountant", "law")
    parts = tuple(HubPart("x/y", "val", config=label, label=label) for label in labels)
    file = write(tmp_path / "val" / "tax_accountant_val.csv")
    assert read_path(file, parts).parts[0].label == "tax_accountant"


@pytest.mark.parametrize(
    "name,content,message",
    [
        ("x.jsonl", '{"a": 1}\n{"a": \n', "x.jsonl, line 2: not JSON"),
        ("x.jsonl", "", "no rows"),
        ("x.jsonl", "[1]\n", "row 0 is list; expected an object"),
        ("x.json", '{"a": 1}', "found dict; expected a list"),
        ("x.parquet", "nonsense", "not Parquet"),
        ("x.csv", 'a,b\n"1,2', "not CSV in UTF-8"),
        ("x.xlsx", "nonsense", "unknown suffix '.xlsx'; expected one of .jsonl"),
    ],
)
def test_a_malformed_file_is_named_with_its_place(tmp_path: Path, name: str, content: str, message: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(DatasetError, match=message) as raised:
        read_path(file, TEST)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no \.jsonl, \.json, \.csv, \.parquet file"):
        read_path(tmp_path, TEST)


def read_names(folder: Path, dataset: str, wanted: frozenset[str] | None = None) -> list[tuple[str, str]]:
    found = read_path(folder, find(dataset).parts, wanted).parts
    return [(part.path.relative_to(folder).as_posix(), part.label) for part in found]


def test_a_snapshot_with_several_configurations_gives_the_datasets_own(tmp_path: Path) -> None:
    for name in ("main/test-0.parquet", "main/train-0.parquet", "socratic/test-0.parquet"):
        write(tmp_path / name)
    assert read_names(tmp_path, "gsm8k") == [("main/test-0.parquet", "")]


def test_a_snapshot_with_a_file_a_subset_gives_the_wanted_ones(tmp_path: Path) -> None:
    for name in ("gpqa_diamond.csv", "gpqa_main.csv", "gpqa_extended.csv", "gpqa_experts.csv"):
        write(tmp_path / name)
    assert read_names(tmp_path, "gpqa", frozenset({"main"})) == [("gpqa_main.csv", "main")]
    assert len(read_names(tmp_path, "gpqa")) == 3


def test_a_snapshot_of_published_files_is_known_by_their_names(tmp_path: Path) -> None:
    for name in ("test.jsonl", "test5.jsonl", "test6.jsonl"):
        write(tmp_path / name)
    assert read_names(tmp_path, "livecodebench", frozenset({"v6", "v1"})) == [
        ("test.jsonl", "v1"),
        ("test6.jsonl", "v6"),
    ]


def test_a_folder_without_the_wanted_label_gives_what_it_has(tmp_path: Path) -> None:
    write(tmp_path / "aime_2025.jsonl")
    write(tmp_path / "notes.jsonl")
    assert read_names(tmp_path, "aime", frozenset({"2024"})) == [("aime_2025.jsonl", "2025")]


def test_a_text_longer_than_the_readers_default_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "test.csv", [{"context": "x" * 200_000}])
    assert len(str(read_path(file, TEST).parts[0].rows[0]["context"])) == 200_000

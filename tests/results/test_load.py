from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specforge.errors import RecordError
from specforge.results.load import load_run
from tests.results.records import record, save


def test_a_file_of_pytest_benchmark_is_read(tmp_path: Path) -> None:
    path = save(tmp_path / "run.json", record("1,0,0,0"), record("1,3,1,4"))
    run = load_run(str(path))
    assert [cell["config"]["num_steps"] for cell in run.cells] == [0, 3]
    assert run.label == "run"
    assert run.machine["node"] == "here"


def test_a_single_record_is_read(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(record()))
    assert len(load_run(str(path)).cells) == 1


def test_a_stored_run_is_found_by_number_name_and_platform(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    save(storage / "Linux-CPython-3.11-64bit" / "0001_before.json", record())
    save(storage / "Linux-CPython-3.11-64bit" / "0002_after.json", record())
    for reference in ("0001", "0001_before", "0001_bef*", "Linux*/0001"):
        assert load_run(reference, storage).label == "0001_before"


def test_a_number_that_two_platforms_have_is_ambiguous(tmp_path: Path) -> None:
    save(tmp_path / "Linux" / "0001_a.json", record())
    save(tmp_path / "Darwin" / "0001_b.json", record())
    with pytest.raises(RecordError, match=r"'0001' means 2 runs, name one of them: .*0001_b.*0001_a"):
        load_run("0001", tmp_path)


def test_a_folder_with_one_run_is_that_run(tmp_path: Path) -> None:
    save(tmp_path / "results" / "20260101-000000.json", record())
    assert load_run(str(tmp_path / "results")).label == "20260101-000000"


def test_the_folder_of_a_runs_rows_means_the_file_beside_it(tmp_path: Path) -> None:
    save(tmp_path / "20260101-000000.json", record())
    (tmp_path / "20260101-000000" / "rows").mkdir(parents=True)
    assert load_run(str(tmp_path / "20260101-000000")).label == "20260101-000000"


def test_benchmarks_of_other_tests_are_left_out_and_said(tmp_path: Path) -> None:
    path = save(tmp_path / "mixed.json", record(), record())
    document = json.loads(path.read_text())
    document["benchmarks"][0]["extra_info"] = {}
    path.write_text(json.dumps(document))
    run = load_run(str(path))
    assert len(run.cells) == 1
    assert "1 of 2 benchmarks are of other tests" in run.notes[0]


def test_numbers_that_json_has_not_are_read(tmp_path: Path) -> None:
    path = save(tmp_path / "run.json", record())
    path.write_text(path.read_text().replace('"ops": 0.9', '"ops": Infinity'))
    assert len(load_run(str(path)).cells) == 1


def edited(**changes: Any) -> dict[str, Any]:
    return record() | changes


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "not a whole JSON file"),
        ("hello", "not a whole JSON file, line 1"),
        ('{"benchmarks": [{"name": "a", "extra', "not a whole JSON file, line 1"),
        ("[1, 2]", "no record of a benchmark"),
        ('{"some": "thing"}', "no record of a benchmark"),
        ('{"benchmarks": []}', "the run has no benchmarks"),
        ('{"benchmarks": [{"name": "a", "extra_info": {}, "stats": {}}]}', "none of its 1 benchmarks has a record"),
        ('{"benchmarks": [7]}', "none of its 1 benchmarks has a record"),
        (json.dumps(edited(format=2)), "the record has the format 2; this version of specforge reads up to 1"),
        (json.dumps(edited(metrics=[])), "the record is damaged: metrics is no object"),
        (json.dumps(edited(requests={"row_id": ["a"], "round": []})), "the columns of its requests differ in length"),
    ],
)
def test_what_is_no_record_is_one_line_that_names_the_file(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"bad\.json: ") as caught:
        load_run(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="there is no run '0007': neither a file nor the beginning of a name in"):
        load_run("0007", tmp_path)


def test_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no run"):
        load_run(str(tmp_path))


def test_a_path_that_is_not_there_is_told_as_such(tmp_path: Path):
    with pytest.raises(RecordError, match=r"there is no run '/.*/none\.json'"):
        load_run(str(tmp_path / "none.json"))


def test_a_sweep_s_levels_are_its_cells(tmp_path: Path):
    levels = [record("2,3,1,4"), record("4,3,1,4")]
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps({"format": 1, "sweep": {"over": "concurrency"}, "cells": levels}))
    assert load_run(str(path)).cells == levels
    del levels[1]["requests"]
    path.write_text(json.dumps({"format": 1, "sweep": {"over": "concurrency"}, "cells": levels}))
    with pytest.raises(RecordError, match=r"sweep\.json: level 2 is damaged: requests is no object"):
        load_run(str(path))


def test_a_cell_without_a_measured_round_is_a_cell_of_the_run(tmp_path: Path):
    path = save(tmp_path / "run.json", record("1,0,0,0"))
    document = json.loads(path.read_text())
    died = record("1,3,1,4", rounds=()) | {"status": "failed", "reason": "the server is gone"}
    document["unmeasured"] = [{"name": "test_cell[1]", "fullname": "test_cell[1]", "extra_info": died}]
    path.write_text(json.dumps(document))
    assert [cell["status"] for cell in load_run(str(path)).cells] == ["ok", "failed"]

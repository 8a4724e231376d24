"""``--resume`` and ``--report``: what a run that was cut off keeps, measures and refuses."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.stage import LIMIT, Stage
from tests.support.processes import Completed
from tests.support.scripted import Answer, Replies, Script

CONFIGS, BENCHMARKS, ROUNDS = ("1,0,0,0", "1,3,1,4"), ("gsm8k:4", "mtbench:2"), 2
LISTS = ("--config-list", *CONFIGS, "--benchmark-list", *BENCHMARKS)
KEPT, PARTIAL, CUT, MISSING = [f"{config}-{benchmark}" for config in CONFIGS for benchmark in BENCHMARKS]
SCRIPT = Script(replies=Replies(seed=5, answers=(Answer("Row 1:", r"\boxed{1}"),)))


@dataclass(frozen=True)
class Left:
    """A whole run, and what is left of a copy of it that was cut off, as if it had been killed in its third cell."""

    stage: Stage
    arguments: list[str]
    whole: dict[str, dict[str, Any]]
    json_path: Path

    @property
    def folder(self) -> Path:
        return self.json_path.with_suffix("")


def cut_off(path: Path) -> None:
    """One record is partial with all of its rows there, and two are missing: one was cut in its second round."""
    document = json.loads(path.read_text(encoding="utf-8"))
    entries = {entry["name"].partition("[")[2].rstrip("]"): entry for entry in document["benchmarks"]}
    entries[PARTIAL]["extra_info"] |= {"status": "partial", "reason": "interrupted"}
    document["benchmarks"] = [entries[KEPT], entries[PARTIAL]]
    path.write_text(json.dumps(document), encoding="utf-8")
    rows = path.parent / entries[CUT]["extra_info"]["rows"]["path"]
    lines = rows.read_text(encoding="utf-8").splitlines()
    rows.write_text("\n".join(lines[:5]) + "\n" + lines[5][:70], encoding="utf-8")
    (path.parent / entries[MISSING]["extra_info"]["rows"]["path"]).unlink()
    rows.with_name(rows.name + ".new").write_text("half a rewr", encoding="utf-8")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    stage = Stage(tmp_path_factory.mktemp("resume"))
    arguments = ["bench_tests", *stage.launching(SCRIPT), "--rounds", str(ROUNDS)]
    run = stage.pytest(*arguments, *LISTS)
    assert run.code == 0, run.output
    whole = stage.records()
    (path,) = stage.results.glob("*.json")
    cut_off(path)
    stage.log.unlink()
    return Left(stage, arguments, whole, path)


def refused(left: Left, *runs: list[str]) -> list[Completed]:
    """Runs that must start nothing, in one process."""
    before = left.json_path.read_bytes()
    found = left.stage.several(*runs)
    assert left.stage.starts() == []
    assert left.json_path.read_bytes() == before
    return found


def test_what_can_t_be_resumed_is_refused_in_one_line_before_anything_starts(left: Left) -> None:
    folder, resume = left.stage.folder, ["--resume", str(left.folder)]
    other_rows = folder / "elsewhere" / "gsm8k.jsonl"
    other_rows.parent.mkdir()
    other_rows.write_text((folder / "gsm8k.jsonl").read_text().replace("pears", "plums"), encoding="utf-8")
    changed = [
        argument.replace(str(folder / "gsm8k.jsonl"), str(other_rows)) if "gsm8k" in argument else argument
        for argument in left.arguments
    ]
    gone = folder / "results" / "gone"
    shutil.copytree(left.folder, gone)
    foreign = folder / "foreign.json"
    foreign.write_text('{"benchmarks": []}', encoding="utf-8")
    cases = {
        f"--resume: '{folder}' is no run; expected its JSON, or the folder": [*left.arguments, "--resume", str(folder)],
        "foreign.json: no run of": [*left.arguments, "--resume", str(foreign)],
        f"--resume: '{gone}' is no run": [*left.arguments, "--resume", str(gone)],
        "was asked something else: configs was": [*left.arguments, *resume, "--config-list", "1,0,0,0"],
        "was asked something else: sampling was": [*left.arguments, *resume, "--temperature", "0.5"],
        "was asked something else: model_path was 'org/model' and is 'org/new'": [
            *(*left.arguments, *resume, "--model-path", "org/new")
        ],
        "1,0,0,0 gsm8k:4: the prompts differ: 4 against 4, 0 of them shared": [*changed, *resume],
        f"--report: '{folder}' can't be written": [*left.arguments, *resume, "--report", str(folder)],
    }
    for says, run in zip(cases, refused(left, *cases.values()), strict=True):
        assert run.code == 4, run.output
        errors = [line for line in run.output.splitlines() if line.startswith("ERROR")]
        assert len(errors) == 1
        assert says in errors[0]


@pytest.fixture(scope="module")
def resumed(left: Left) -> Completed:
    """The run, gone on with: the matrix is the saved run's."""
    page, exported = left.stage.folder / "page.html", left.stage.folder / "exported.json"
    goes_on = ("--resume", str(left.folder), "--report", str(page), "--benchmark-json", str(exported))
    return left.stage.pytest(*left.arguments, *goes_on)


def test_the_record_is_whole_again_and_what_was_whole_is_untouched(left: Left, resumed: Completed) -> None:
    assert resumed.code == 0, resumed.output
    records = left.stage.records()
    assert list(records) == [KEPT, PARTIAL, CUT, MISSING]
    assert {record["status"] for record in records.values()} == {"ok"}
    assert records[KEPT] == left.whole[KEPT]
    assert len(list(left.stage.results.glob("*.json"))) == 1
    for cell, record in records.items():
        for name in ("accuracy", "acceptance_length", "output_tokens", "lossless"):
            assert record["metrics"][name] == left.whole[cell]["metrics"][name], (cell, name)
    exported = json.loads((left.stage.folder / "exported.json").read_text(encoding="utf-8"))["benchmarks"]
    assert [entry["param"] for entry in exported] == list(records)


def test_whole_rounds_come_from_the_rows_and_the_cut_one_is_measured_anew(left: Left, resumed: Completed) -> None:
    records = left.stage.records()
    assert "resumed: cells kept: 1, measured: 3" in resumed.output
    said = "round 1 from the rows, answers and times; round 2 measured anew; 1 rows superseded; the last row was cut"
    assert f"resumed: 1,3,1,4 gsm8k:4: {said}" in resumed.output
    assert "resumed: 1,0,0,0 mtbench:2: rounds 1, 2 from the rows, answers and times" in resumed.output
    assert records[CUT]["environment"]["resumed"] == {
        "rounds_from_rows": [0],
        "rounds_measured_anew": [1],
        "rows_superseded": 1,
        "last_row_was_cut": True,
        "other_conditions": False,
    }
    now, before = (side[CUT]["metrics"]["rounds"] for side in (records, left.whole))
    assert now[0] == before[0]
    assert now[1]["duration"] != before[1]["duration"]
    assert records[PARTIAL]["metrics"]["rounds"] == left.whole[PARTIAL]["metrics"]["rounds"]


def test_no_answer_is_lost_or_counted_twice_and_none_is_asked_for_again(left: Left, resumed: Completed) -> None:  # noqa: ARG001
    for record in left.stage.records().values():
        counting = Counter((row["row_id"], row["round"]) for row in left.stage.rows(record) if "superseded" not in row)
        ids = record["benchmark"]["row_ids"]
        assert counting == Counter((row_id, number) for row_id in ids for number in range(ROUNDS))
    asked: Counter[tuple[str, int]] = Counter()
    for entry in left.stage.log_entries():
        body = entry.get("request")
        if isinstance(body, dict) and body.get("max_tokens") == LIMIT:
            asked[body["messages"][0]["content"].split()[0], body["seed"]] += 1
    assert asked == {("Row", 43): 4, ("Talk", 42): 4, ("Talk", 43): 4}


def test_the_page_is_written_at_the_end_and_named(left: Left, resumed: Completed) -> None:
    page = left.stage.folder / "page.html"
    assert f"report: {page}" in resumed.output
    text = page.read_text(encoding="utf-8")
    assert all(text.count(part) for part in ("<svg", "1,3,1,4", "mtbench:2"))


def test_a_run_that_lacks_nothing_measures_nothing_and_passes(left: Left, resumed: Completed) -> None:  # noqa: ARG001
    starts = len(left.stage.starts())
    (run,) = left.stage.several([*left.arguments, *LISTS, "--resume", str(left.json_path)])
    assert run.code == 0, run.output
    assert "cells kept: 4, to measure: none" in run.output
    assert len(left.stage.starts()) == starts

"""What a cell's rows alone give back of a measurement: every number, but for the gaps between streamed chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specforge.datasets.model import Prompt
from specforge.errors import RecordError
from specforge.measurement.conditions import keep_conditions
from specforge.measurement.earlier import read_earlier
from tests.measurement.cells import measure, measured_bodies, questions, target
from tests.support.scripted import Fault, Replies, Script, Speculation
from tests.support.scripted_server import ScriptedServer

PROMPTS = questions(4)
HERE = {"server": {"model_path": "org/model"}, "node": "here"}
SCRIPT = Script(speculation=Speculation(), replies=Replies(unverified_share=0.3))


def test_whole_rounds_give_the_numbers_that_were_measured(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    keep_conditions(path, HERE, 0)
    for stream in (False, True):
        path.unlink(missing_ok=True)
        with ScriptedServer(SCRIPT) as server:
            first, _ = measure(target(server.base_url, stream=stream), PROMPTS, tmp_path, rounds=2, rows_path=path)
            asked = len(server.requests)
            earlier = read_earlier(path, PROMPTS, 2, HERE)
            again, rows = measure(
                target(server.base_url, stream=stream), PROMPTS, tmp_path, rounds=2, rows_path=path, earlier=earlier
            )
            assert measured_bodies(server.requests[asked:]) == []
        assert again["metrics"] == first["metrics"] | {"itl": None}
        assert again["requests"] == first["requests"]
        assert again["environment"]["resumed"] == {
            "rounds_from_rows": [0, 1],
            "rounds_measured_anew": [],
            "rows_superseded": 0,
            "last_row_was_cut": False,
            "other_conditions": False,
        }
        assert len(rows) == 2 * len(PROMPTS)


def test_a_cut_round_and_one_with_a_failed_request_are_measured_anew(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    keep_conditions(path, HERE, 0)
    spoiling = Script(faults=(Fault("status", status=400, containing="Question 2 ", times=1),))
    with ScriptedServer(spoiling) as server:
        _, rows = measure(server.base_url, PROMPTS, tmp_path, rounds=3, rows_path=path)
        assert [row["attempt"] for row in rows].count(1) == 4, "the first round was spoilt and measured twice"
        lines = path.read_text(encoding="utf-8").splitlines()
        # As if killed in the second round's third row, while its fourth prompt was under way.
        path.write_text("\n".join(lines[: 4 + 4 + 2]) + "\n" + lines[10][:50], encoding="utf-8")
        earlier = read_earlier(path, PROMPTS, 3, HERE)
        record, rows = measure(server.base_url, PROMPTS, tmp_path, rounds=3, rows_path=path, earlier=earlier)
    assert record["environment"]["resumed"] == {
        "rounds_from_rows": [0],
        "rounds_measured_anew": [1, 2],
        "rows_superseded": 4 + 2,
        "last_row_was_cut": True,
        "other_conditions": False,
    }
    counting = [(row["round"], row["row_id"]) for row in rows if not row.get("superseded")]
    assert sorted(counting) == [(number, prompt.row_id) for number in range(3) for prompt in PROMPTS]
    assert [round_["usable"] for round_ in record["metrics"]["rounds"]] == [True] * 3


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda row: row | {"row_id": "another"}, "its rows are of other prompts than are asked now"),
        (lambda row: row | {"followups": ["and?"]}, "its rows are of other prompts than are asked now"),
        (lambda row: [row], "not a row of a benchmark"),
        (lambda row: {**row, "turns": [{}]}, "the row of .* is damaged, or of an older version"),
        (lambda row: {**row, "turns": ["text"]}, "the row of .* is damaged, or of an older version"),
        (lambda row: {**row, "round": "0"}, "the row of .* is damaged, or of an older version"),
        (lambda row: {"row_id": row["row_id"]}, "the row of .* is damaged, or of an older version"),
    ],
)
def test_rows_of_something_else_are_refused_in_one_line(tmp_path: Path, change: Any, says: str) -> None:
    path = tmp_path / "rows.jsonl"
    with ScriptedServer(Script()) as server:
        _, rows = measure(server.base_url, PROMPTS[:1], tmp_path, rows_path=path)
    path.write_text("".join(json.dumps(change(row)) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(
        RecordError, match=rf"--resume: .*{says}.*; without that file the cell is measured anew"
    ) as said:
        read_earlier(path, PROMPTS[:1], 1, HERE)
    assert "\n" not in str(said.value)


def test_a_file_that_holds_nothing_is_no_earlier_measurement(tmp_path: Path) -> None:
    prompts: tuple[Prompt, ...] = PROMPTS
    assert read_earlier(tmp_path / "none.jsonl", prompts, 1, HERE) is None
    (tmp_path / "empty.jsonl").touch()
    assert read_earlier(tmp_path / "empty.jsonl", prompts, 1, HERE) is None


def test_rows_of_another_server_or_without_times_count_for_nothing_however_often_it_is_resumed(tmp_path: Path) -> None:
    path, there = tmp_path / "rows.jsonl", HERE | {"node": "there"}
    with ScriptedServer(Script()) as server:
        _, rows = measure(server.base_url, PROMPTS, tmp_path, rows_path=path)
    unknown = read_earlier(path, PROMPTS, 1, HERE)
    assert unknown is not None
    assert (unknown.attempts, unknown.superseded, unknown.other_conditions) == ({}, 4, True)
    keep_conditions(path, HERE, 0)
    same, other = read_earlier(path, PROMPTS, 1, HERE), read_earlier(path, PROMPTS, 1, there)
    assert same is not None
    assert other is not None
    assert (same.attempts, same.other_conditions) == ({0: 0}, False)
    assert (other.attempts, other.first_attempt) == ({}, 1)
    keep_conditions(path, there, other.first_attempt)  # and killed before its first row
    again = read_earlier(path, PROMPTS, 1, there)
    assert again is not None
    assert (again.attempts, again.first_attempt) == ({}, 1)
    keep_conditions(path, HERE, 0)
    rows[0]["turns"][0]["ended_at"] = None
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    untimed = read_earlier(path, PROMPTS, 1, HERE)
    assert untimed is not None
    assert untimed.attempts == {}

"""The files of a run: rows that land whole, and a JSON that is never half a JSON."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path

import pytest

from specforge.client.reply import Reply, SpecCounts
from specforge.datasets.model import Prompt
from specforge.errors import OutputError, RecordError, UsageError
from specforge.load.conversation import Outcome
from specforge.load.prepare import PreparedPrompt
from specforge.results.output import write_text
from specforge.results.rows import RowWriter, read_rows, rewrite, sha256_of, without_images
from specforge.results.run_file import RunFiles, run_stem, safe_name, write_json_atomically

STARTED = datetime(2026, 2, 3, 4, 5, 6)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def outcome(row_id: str, text: str = "four") -> Outcome:
    prompt = Prompt(row_id, 7, ({"role": "user", "content": "2 + 2 = ?"},), followups=("And 3 + 3?",), category="sums")
    reply = Reply(
        text=text,
        output_ids=[5, 6],
        finish_reason="stop",
        completion_tokens=2,
        prompt_tokens=9,
        cached_tokens=1,
        spec=SpecCounts(1, 2, 3, [0, 0, 1]),
        sent_at=10.0,
        ended_at=10.5,
        server_ttft=0.1,
    )
    return Outcome(PreparedPrompt(prompt, (1, 2), (3,), "a", "b"), 1, [reply], retries=1)


def test_a_row_holds_the_prompt_the_text_the_ids_and_the_counts(tmp_path: Path):
    writer = RowWriter(tmp_path / "deep" / "rows.jsonl")
    writer.write(outcome("r1"), attempt=0)
    writer.close()
    assert list(read_rows(writer.path)) == [
        {
            "row_id": "r1",
            "index": 7,
            "round": 1,
            "attempt": 0,
            "status": "ok",
            "error": None,
            "retries": 1,
            "clamped": False,
            "category": "sums",
            "messages": [{"role": "user", "content": "2 + 2 = ?"}],
            "followups": ["And 3 + 3?"],
            "turns": [
                {
                    "text": "four",
                    "reasoning": None,
                    "finish_reason": "stop",
                    "output_ids": [5, 6],
                    "prompt_tokens": 9,
                    "output_tokens": 2,
                    "cached_tokens": 1,
                    "verify_steps": 1,
                    "correct_drafts": 2,
                    "proposed_drafts": 3,
                    "histogram": [0, 0, 1],
                    "latency": 0.5,
                    "ttft": 0.1,
                    "sent_at": 10.0,
                    "first_token_at": None,
                    "ended_at": 10.5,
                    "server_latency": None,
                }
            ],
        }
    ]


def test_a_row_is_on_disk_as_soon_as_it_is_written(tmp_path: Path):
    writer = RowWriter(tmp_path / "rows.jsonl")
    for at in range(3):
        writer.write(outcome(f"r{at}", text="line\nbreak \u2028 and \x00"), attempt=0)
        assert [row["row_id"] for row in read_rows(writer.path)] == [f"r{done}" for done in range(at + 1)]
    writer.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_row_or_a_document_that_does_not_fit_on_the_disk_is_one_line_that_names_the_file(tmp_path: Path):
    with pytest.raises(OutputError, match=r"^/dev/full: can't be written: No space left on device; expected room"):
        RowWriter(Path("/dev/full")).write(outcome("r0"), attempt=0)
    write_json_atomically(tmp_path / "run.json", {"cells": 1})
    (tmp_path / "run.json.new").symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"run\.json: can't be written: No space left on device"):
        write_json_atomically(tmp_path / "run.json", {"cells": 2})
    assert json.loads((tmp_path / "run.json").read_text()) == {"cells": 1}


def test_an_image_is_kept_as_its_hash():
    message = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]}
    text, picture = without_images(message)["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert (picture["type"], len(picture["sha256"])) == ("image_url", 16)
    assert "AAAA" not in str(without_images(message))
    assert message["content"][1] == PICTURE


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b'{"row_id": "a"}\n{"row_id": "b', r"rows.jsonl:2: not a whole line of JSON"),
        (b'{"row_id": "a"}\n[1]\n', r"rows.jsonl:2: not a row of a benchmark"),
        (b'{"other": 1}\n', r"rows.jsonl:1: not a row of a benchmark"),
        (None, "No such file"),
    ],
    ids=["cut", "no object", "another file", "missing"],
)
def test_what_is_no_rows_file_is_refused_with_the_line(tmp_path: Path, content: bytes | None, complaint: str):
    path = tmp_path / "rows.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordError, match=complaint):
        list(read_rows(path))


def test_rewriting_changes_and_drops_rows_and_leaves_the_old_file_when_it_fails(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"row_id": "a"}\n{"row_id": "b"}\n')
    rewrite(path, lambda row: {**row, "score": 1} if row["row_id"] == "b" else None)
    assert list(read_rows(path)) == [{"row_id": "b", "score": 1}]
    before = path.read_bytes()

    def breaks(row: dict) -> dict:
        raise RuntimeError(row["row_id"])

    with pytest.raises(RuntimeError):
        rewrite(path, breaks)
    assert path.read_bytes() == before
    assert sha256_of(path) == hashlib.sha256(before).hexdigest()


def test_a_run_s_files_are_named_after_the_run_and_when_it_began(tmp_path: Path):
    files = RunFiles.new(tmp_path / "results", run_stem("my run/1", STARTED))
    assert files.json_path == tmp_path / "results" / "my_run_1-20260203-040506.json"
    rows = files.rows_path("1,3,1,4", "ceval:5:a b,c")
    assert rows == files.folder / "rows" / "1,3,1,4-ceval_5_a_b,c.jsonl"
    assert files.relative(rows) == "my_run_1-20260203-040506/rows/1,3,1,4-ceval_5_a_b,c.jsonl"
    assert files.absolute(files.relative(rows)).resolve() == rows.resolve()


def test_runs_of_the_same_second_have_files_of_their_own(tmp_path: Path):
    stems = [RunFiles.new(tmp_path, run_stem(None, STARTED)).json_path.stem for _ in range(3)]
    assert stems == ["20260203-040506", "20260203-040506-2", "20260203-040506-3"]


def test_a_folder_that_can_not_be_made_is_a_usage_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--output-dir: "):
        RunFiles.new(tmp_path / "file" / "results", "run")


def test_a_document_replaces_the_old_one_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "run.json"
    write_json_atomically(path, {"a": 1})
    write_json_atomically(path, {"a": [1.5, None, "ü"], 2: tmp_path})
    assert json.loads(path.read_text()) == {"a": [1.5, None, "ü"], "2": str(tmp_path)}
    endless: list = []
    endless.append(endless)
    with pytest.raises(TypeError):
        write_json_atomically(path, {"a": endless})
    assert json.loads(path.read_text())["a"] == [1.5, None, "ü"]


@pytest.mark.parametrize("text", ["../../etc/passwd", "a b:c/d", "x" * 500, "1,3,1,4", "名前" * 200])
def test_a_name_is_safe_in_any_folder(tmp_path: Path, text: str):
    name = safe_name(text)
    assert "/" not in name
    (tmp_path / f"1,3,1,4-{name}.jsonl.new").write_text("")


def test_long_names_that_differ_at_their_end_are_told_apart():
    assert safe_name("mmlu:5:" + "a," * 200 + "b") != safe_name("mmlu:5:" + "a," * 200 + "c")


def test_a_page_with_half_a_surrogate_pair_is_written(tmp_path: Path) -> None:
    write_text(tmp_path / "page.html", "half \ud800")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "half \\ud800"

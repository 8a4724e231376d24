from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from specforge.results.load import SavedRun
from specforge.results.relate import add_lossless, add_speedup
from tests.results.records import record, run


def test_speedup_is_throughput_by_that_of_the_target_only_cell_of_the_same_batch_size() -> None:
    cells: list[Any] = [
        record("1,0,0,0", rounds=(100, 102, 98)),
        record("1,3,1,4", rounds=(200, 204, 196)),
        record("4,0,0,0", rounds=(300, 306, 294)),
        record("4,3,1,4", rounds=(450, 459, 441)),
    ]
    add_speedup(cells)
    assert [cell["metrics"]["speedup"] for cell in cells] == pytest.approx([None, 2.0, None, 1.5])
    metrics = cells[1]["metrics"]
    low, high = metrics["speedup_interval"]
    assert 1.8 < low < 2.0 < high < 2.2
    assert metrics["speedup_interval_unit"] == "round"
    assert metrics["efficiency"] == pytest.approx(2.0 / metrics["acceptance_length"])
    assert "speedup" not in metrics["reasons"]


def test_the_baseline_itself_has_no_speedup_and_says_so() -> None:
    cells: list[Any] = [record("1,0,0,0")]
    add_speedup(cells)
    assert cells[0]["metrics"]["speedup"] is None
    assert cells[0]["metrics"]["reasons"]["speedup"] == "the cell is itself the target-only baseline"


def test_a_baseline_of_another_batch_size_or_benchmark_is_never_used() -> None:
    cells: list[Any] = [record("1,0,0,0"), record("4,3,1,4"), record("1,3,1,4", "mtbench")]
    add_speedup(cells)
    assert cells[1]["metrics"]["speedup"] is None
    assert cells[1]["metrics"]["reasons"]["speedup"] == ("no target-only configuration 4,0,0,0 of gsm8k:40 in this run")
    assert cells[2]["metrics"]["speedup"] is None


def test_a_server_that_does_not_say_what_it_runs_is_no_baseline() -> None:
    unknown = record("1,0,0,0")
    unknown["config"] |= {"num_steps": None, "topk": None, "num_draft_tokens": None}
    cells: list[Any] = [unknown, record("1,3,1,4")]
    add_speedup(cells)
    assert [cell["metrics"]["speedup"] for cell in cells] == [None, None]
    assert "no target-only configuration" in cells[0]["metrics"]["reasons"]["speedup"]


def test_with_one_round_the_interval_is_over_prompts() -> None:
    cells: list[Any] = [record("1,0,0,0", rounds=[100.0]), record("1,3,1,4", rounds=[150.0])]
    cells[1]["requests"]["latency"] = [
        0.6 * t * (1 + 0.1 * (i % 3)) for i, t in enumerate(cells[0]["requests"]["latency"])
    ]
    add_speedup(cells)
    metrics = cells[1]["metrics"]
    assert metrics["speedup_interval_unit"] == "prompt"
    assert metrics["speedup_interval"][0] < metrics["speedup"] < metrics["speedup_interval"][1]


def test_a_cell_without_throughput_has_the_reason() -> None:
    cells: list[Any] = [record("1,0,0,0", rounds=[]), record("1,3,1,4")]
    add_speedup(cells)
    assert cells[1]["metrics"]["reasons"]["speedup"] == "1,0,0,0 gsm8k:40 has no throughput"


def write_rows(folder: Path, name: str, answers: dict[str, list[list[int] | None]], **row: Any) -> dict[str, str]:
    path = folder / "run" / "rows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"row_id": row_id, "round": 0, "status": "ok", "turns": [{"output_ids": turn} for turn in turns]} | row
        for row_id, turns in answers.items()
    ]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return {"path": f"run/rows/{name}", "sha256": ""}


def cells_with_rows(folder: Path, baseline: Any, speculative: Any, **row: Any) -> list[Any]:
    cells: list[Any] = [record("1,0,0,0", prompts=3), record("1,3,1,4", prompts=3)]
    cells[0]["rows"] = write_rows(folder, "target.jsonl", baseline)
    cells[1]["rows"] = write_rows(folder, "draft.jsonl", speculative, **row)
    return cells


TARGET = {"gsm8k-0": [[1, 2, 3]], "gsm8k-1": [[4, 5], [6]], "gsm8k-2": [[7, 8, 9, 10]]}


def test_losslessness_compares_token_ids_turn_by_turn(tmp_path: Path) -> None:
    cells = cells_with_rows(
        tmp_path, TARGET, {"gsm8k-2": [[7, 8, 1, 10]], "gsm8k-0": [[1, 2, 3]], "gsm8k-1": [[4, 5], [6]]}
    )
    add_lossless(cells, tmp_path)
    assert cells[1]["metrics"]["lossless"] == {
        "identical_share": 0.75,
        "compared": 4,
        "identical": 3,
        "first_difference": {"p10": 2.0, "p50": 2.0, "p90": 2.0},
    }
    assert cells[1]["requests"]["identical"] == [True, True, False]
    assert cells[0]["metrics"]["lossless"] is None
    assert "baseline" in cells[0]["metrics"]["reasons"]["lossless"]


def test_superseded_rows_and_failed_requests_are_not_compared(tmp_path: Path) -> None:
    cells = cells_with_rows(tmp_path, TARGET, TARGET, superseded=True)
    add_lossless(cells, tmp_path)
    assert cells[1]["metrics"]["lossless"] is None
    assert "no answer with token ids" in cells[1]["metrics"]["reasons"]["lossless"]


def test_a_server_without_token_ids_gives_the_reason(tmp_path: Path) -> None:
    cells = cells_with_rows(tmp_path, {name: [None] for name in TARGET}, TARGET)
    add_lossless(cells, tmp_path)
    assert cells[1]["metrics"]["reasons"]["lossless"] == "the server gave no token ids for 1,0,0,0 gsm8k:3"


def test_rows_that_are_gone_give_the_reason(tmp_path: Path) -> None:
    cells = cells_with_rows(tmp_path, TARGET, TARGET)
    (tmp_path / "run" / "rows" / "target.jsonl").unlink()
    add_lossless(cells, tmp_path)
    assert cells[1]["metrics"]["reasons"]["lossless"] == "1,0,0,0 gsm8k:3 has no rows"


def test_rows_cut_in_the_middle_give_file_and_line(tmp_path: Path) -> None:
    cells = cells_with_rows(tmp_path, TARGET, TARGET)
    path = tmp_path / "run" / "rows" / "draft.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    add_lossless(cells, tmp_path)
    assert "draft.jsonl:3: not a whole line of JSON" in cells[1]["metrics"]["reasons"]["lossless"]


def test_a_saved_run_can_be_the_baseline(tmp_path: Path) -> None:
    saved, new = tmp_path / "saved", tmp_path / "new"
    old = cells_with_rows(saved, TARGET, TARGET)
    now = cells_with_rows(new, TARGET, TARGET)[1:]
    add_lossless(now, new, SavedRun("before", old, saved))
    assert now[0]["metrics"]["lossless"]["identical_share"] == 1.0


def test_a_saved_baseline_that_was_asked_something_else_is_not_used(tmp_path: Path) -> None:
    now = cells_with_rows(tmp_path, TARGET, TARGET)[1:]
    old = record("1,0,0,0", prompts=3)
    old["benchmark"]["sampling"]["temperature"] = 0.7
    add_lossless(now, tmp_path, run(old, label="before", folder=tmp_path))
    assert now[0]["metrics"]["lossless"] is None
    assert "before was asked something else: sampling differs" in now[0]["metrics"]["reasons"]["lossless"]

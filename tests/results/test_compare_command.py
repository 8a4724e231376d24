"""``specforge compare`` as a user runs it: arguments in, text and exit status out."""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specforge.commands import compare
from specforge.errors import RecordError, UsageError
from tests.results.records import record, save, slowed

SPEED = (100.0, 101.0, 99.0, 100.5, 99.5)


def call(*arguments: object) -> int:
    root = argparse.ArgumentParser()
    compare.add_parser(root.add_subparsers())
    return compare.run(root.parse_args(["compare", *map(str, arguments)]))


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    target, draft = record("1,0,0,0", rounds=SPEED), record("1,3,1,4", rounds=[2 * r for r in SPEED])
    return save(tmp_path / "before.json", target, draft), save(tmp_path / "after.json", target, slowed(draft, 0.8))


def test_the_table_shows_before_after_and_what_is_significant(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*runs) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["configuration", "benchmark", "metric", "before", "after", "change"]
    (slower,) = [line for line in lines if "throughput" in line and "200.0" in line]
    assert "160.0 tok/s" in slower
    assert slower.endswith("worse")


def test_a_regression_gives_status_one_and_its_line(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*runs, "--fail-on", "throughput:5%", "accuracy:2pp") == 1
    out = capsys.readouterr().out
    assert "REGRESSION 1,3,1,4 gsm8k:40 throughput 200.0 tok/s -> 160.0 tok/s, -20.0 % [" in out
    assert "gate: 1 regression, 3 ok" in out


def test_a_tolerance_that_holds_gives_status_zero(runs: tuple[Path, Path]) -> None:
    assert call(*runs, "--fail-on", "throughput:30%") == 0


def test_undecided_fails_only_when_asked(tmp_path: Path) -> None:
    cell = record(rounds=[100.0])
    base, new = save(tmp_path / "a.json", cell), save(tmp_path / "b.json", slowed(cell, 0.5))
    assert call(base, new, "--fail-on", "throughput:5%") == 0
    assert call(base, new, "--fail-on", "throughput:5%", "--fail-on-undecided") == 1


def test_markdown_is_a_table_with_the_findings_first(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    call(*runs, "--format", "markdown", "--fail-on", "throughput:5%")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "### before → after"
    assert lines[2].startswith("- ❌ REGRESSION 1,3,1,4")
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| configuration | benchmark | metric | before | after | change |"
    assert {line.count("|") for line in table} == {7}


def test_markdown_escapes_what_would_break_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = record()
    cell["benchmark"]["spec"] = "a|b<script>"
    path = save(tmp_path / "run.json", cell)
    call(path, path, "--format", "markdown")
    assert "a\\|b&lt;script>" in capsys.readouterr().out


def test_json_holds_numbers_tests_and_the_gate(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    call(*runs, "--format", "json", "--fail-on", "throughput:5%")
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert comparison["gate"]["failed"]
    (row,) = [r for r in comparison["rows"] if r["config"] == "1,3,1,4" and r["metric"] == "throughput"]
    assert row["change"] == pytest.approx(-0.2)
    assert row["change_low"] < -0.2 < row["change_high"]
    assert (row["mark"], row["verdict"]) == ("worse", "REGRESSION")
    assert row["p_gate"] < 0.001


def test_csv_has_one_line_a_metric(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    call(*runs, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["config"] for row in rows} == {"1,0,0,0", "1,3,1,4"}
    assert [row["after"] for row in rows if row["metric"] == "throughput"] == ["100.0", "160.0"]


def test_several_runs_stand_side_by_side(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    third = save(tmp_path / "third.json", record("1,3,1,4", rounds=[250.0] * 3))
    assert call(*runs, third, "--fail-on", "throughput:5%") == 1
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[3:] == ["before", "after", "change", "third", "change"]
    assert "only in before: 1,0,0,0 gsm8k:40" in out
    assert "after: REGRESSION" in out
    assert "third: IMPROVED" in out


def test_the_output_can_go_to_a_file(runs: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "table.md"
    assert call(*runs, "--format", "markdown", "--output", target) == 0
    assert target.read_text().startswith("### before")


def test_an_output_that_cannot_be_written_is_one_line(runs: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--output: .* can't be written: No such file"):
        call(*runs, "--output", tmp_path / "nowhere" / "table.txt")


def test_a_missing_baseline_is_refused(runs: tuple[Path, Path]) -> None:
    with pytest.raises(RecordError, match="there is no run '0099'"):
        call("0099", runs[1])


def test_stored_runs_are_named_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in ("0001", "0002"):
        save(tmp_path / "Linux-CPython-3.11-64bit" / f"{number}_nightly.json", record())
    assert call("0001", "0002", "--storage", tmp_path) == 0
    assert "0002_nightly" in capsys.readouterr().out


def test_other_prompts_are_refused_and_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = save(tmp_path / "a.json", record(prompts=40)), save(tmp_path / "b.json", record(prompts=30))
    with pytest.raises(RecordError, match="the prompts differ: 40 against 30, 30 of them shared"):
        call(base, new)
    assert call(base, new, "--force") == 0
    assert "(forced)" in capsys.readouterr().out


def test_pytest_benchmark_itself_still_compares_the_files(runs: tuple[Path, Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", *map(str, runs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "test_cell[0]" in done.stdout


def test_an_answer_that_nobody_measured_has_no_line(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    call(*runs)
    first_cell: list[str] = []
    for line in capsys.readouterr().out.splitlines()[2:]:
        if line.startswith("1,3,1,4"):
            break
        first_cell.append(line)
    assert not any("acceptance_length" in line or "lossless" in line for line in first_cell)


def big(seed: float) -> list[dict[str, Any]]:
    cells = []
    for number in range(20):
        cell = record(f"{number + 1},3,1,4", prompts=1319, rounds=[seed, seed + 1, seed - 1, seed, seed])
        rows = cell["requests"]
        cell["requests"] = {name: column * 5 for name, column in rows.items()}
        cell["requests"]["round"] = [r for r in range(5) for _ in range(1319)]
        cells.append(cell)
    return cells


def test_twenty_cells_of_1319_prompts_compare_without_reading_anything_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = save(tmp_path / "a.json", *big(100)), save(tmp_path / "b.json", *big(101))
    assert call(base, new, "--fail-on", "throughput:5%", "acceptance_length:2%", "accuracy:2pp") == 0
    assert "gate: 60 ok" in capsys.readouterr().out

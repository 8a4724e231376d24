"""Large runs, as seconds: pytest tests/perf/results_benchmark.py -s

Not collected by default. Two records of 20 cells x 1,319 prompts, with rows of a thousand characters an answer, are
loaded and compared with a gate, and one of them is made into a page, by the commands as a user runs them.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from specforge.results.relate import add_speedup
from tests.results.records import record, save
from tests.support.processes import running

PROMPTS = 1319
WITHIN = 3.0
CONFIGS = [f"{batch},{steps},1,{steps + 1 if steps else 0}" for batch in (1, 4, 16, 64, 256) for steps in (0, 3)]
BENCHMARKS = ("gsm8k", "math500")
TEXT = "Each of the pears costs two coins. " * 29


def saved(folder: Path, name: str, pace: float) -> Path:
    """A run with its rows, as `pytest bench_tests` leaves them."""
    cells: list[Any] = [
        record(config, benchmark, prompts=PROMPTS, rounds=[pace * 100, pace * 101, pace * 99])
        for config in CONFIGS
        for benchmark in BENCHMARKS
    ]
    add_speedup(cells)
    rows_folder = folder / name / "rows"
    rows_folder.mkdir(parents=True)
    for number, cell in enumerate(cells):
        turn = {"text": TEXT, "reasoning": None, "output_ids": list(range(250))}
        messages = [{"role": "user", "content": TEXT}]
        rows = [
            {"row_id": row_id, "round": 0, "status": "ok", "messages": messages, "turns": [turn]}
            for row_id in cell["requests"]["row_id"]
        ]
        path = rows_folder / f"{number}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        cell["rows"] = {"path": f"{name}/rows/{number}.jsonl", "sha256": ""}
    return save(folder / f"{name}.json", *cells)


@pytest.fixture
def seconds(tmp_path: Path) -> Callable[..., float]:
    """How long a command takes, its start included."""

    def measure(*arguments: object) -> float:
        started = perf_counter()
        with running([sys.executable, "-m", "specforge.cli", *map(str, arguments)], cwd=tmp_path) as program:
            assert program.wait(60) == 0, program.output
        return perf_counter() - started

    return measure


def test_twenty_cells_are_compared_and_reported_in_three_seconds(tmp_path: Path, seconds: Callable[..., float]) -> None:
    base, new = saved(tmp_path, "base", 1.0), saved(tmp_path, "new", 1.01)
    gate = ("--fail-on", "throughput:5%", "acceptance_length:2%", "accuracy:2pp")
    compared = min(seconds("compare", base, new, *gate) for _ in range(3))
    reported = min(seconds("report", base, "--output", tmp_path / "report.html") for _ in range(3))
    print(f"\n{compared:.2f} s to load and compare, {reported:.2f} s to load and report")
    assert compared + reported < WITHIN

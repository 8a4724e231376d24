"""Cells measured in this process against scripted servers: real sockets, no pytest in between."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specforge.client.endpoint import Endpoint
from specforge.client.sampling import Sampling
from specforge.datasets.model import Benchmark, Prompt, Source
from specforge.matrix import BenchmarkSpec
from specforge.measurement.cell import CellPlan, measure_cell
from specforge.measurement.progress import Silent
from specforge.measurement.target import Target
from specforge.results.record import CellRecord
from specforge.results.rows import Row, read_rows
from tests.support.processes import ROOT, free_port, running
from tests.support.scripted import Script
from tests.support.scripted.script import dump

LIMIT = 300
"""Tokens that measured requests ask for; warm-up asks for at most 256, so a server's log tells them apart."""


def questions(count: int, *, start: int = 0, **fields: Any) -> tuple[Prompt, ...]:
    """Prompts that a server can tell apart; ``fields`` are :class:`Prompt`'s."""
    return tuple(
        Prompt(f"row-{at}", at, ({"role": "user", "content": f"Question {at} is asked."},), **fields)
        for at in range(start, start + count)
    )


def benchmark(prompts: Sequence[Prompt], warmup: Sequence[Prompt] = (), name: str = "gsm8k") -> Benchmark:
    """Prompts as a benchmark; other questions warm up unless said otherwise."""
    return Benchmark(
        name=name,
        prompts=tuple(prompts),
        warmup=tuple(warmup) or questions(16, start=1000),
        max_new_tokens=LIMIT,
        source=Source("file", "rows.jsonl"),
    )


def target(base_url: str, **given: Any) -> Target:
    """A server that runs already, probed."""
    defaults: dict[str, Any] = {"request_timeout": 20.0}
    return Target(Endpoint.parse(base_url), lambda: None, None, **{**defaults, **given})


def measure(
    server: Target | str, prompts: Sequence[Prompt] | Benchmark, folder: Path, **plan: Any
) -> tuple[CellRecord, list[Row]]:
    """Measures one cell; gives its record and its rows."""
    probed = target(server) if isinstance(server, str) else server
    asked = prompts if isinstance(prompts, Benchmark) else benchmark(prompts)
    taken = len(list(folder.glob("rows-*.jsonl")))
    defaults: dict[str, Any] = {
        "config": {"batch_size": 2},
        "spec": BenchmarkSpec.parse(f"{asked.name}:{len(asked.prompts)}"),
        "benchmark": asked,
        "concurrency": 2,
        "sampling": Sampling.greedy(),
        "max_new_tokens": LIMIT,
        "rows_path": folder / f"rows-{taken}.jsonl",
    }
    cell = CellPlan(**{**defaults, **plan})
    try:
        record = measure_cell(probed, cell, Silent(), {})
    finally:
        if isinstance(server, str):
            probed.close()
    return record, list(read_rows(cell.rows_path))


@contextmanager
def served(script: Script, folder: Path) -> Iterator[tuple[str, Callable[[], list[dict[str, Any]]]]]:
    """A scripted server in a process of its own, which leaves this one to the client: its address, and its log."""
    log, port = folder / "requests.jsonl", free_port()
    flags = ["--script", str(dump(script, folder / "script.json")), "--script-log", str(log), "--enable-metrics"]
    program = [sys.executable, str(ROOT / "tests" / "support" / "scripted_server.py"), *flags, "--port", str(port)]
    with running(program, cwd=folder) as process:
        process.wait_for_output("ready to roll", within=30)
        yield f"http://127.0.0.1:{port}", lambda: [json.loads(line) for line in log.read_text().splitlines()[1:]]


def measured_bodies(log: Sequence[Mapping[str, Any]], limit: int = LIMIT) -> list[dict[str, Any]]:
    """The bodies of the measured chat requests in a scripted server's log, in the order in which they were sent."""
    entries = [entry for entry in log if entry["ordinal"] is not None and isinstance(entry["request"], dict)]
    entries.sort(key=lambda entry: entry["started"])
    return [entry["request"] for entry in entries if entry["request"].get("max_tokens") == limit]

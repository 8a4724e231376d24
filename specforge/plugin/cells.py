"""One test item: its cell is measured, kept, and judged."""

from __future__ import annotations

from typing import Any

import pytest

from specforge.errors import SpecForgeError
from specforge.matrix import BenchmarkSpec
from specforge.measurement.cell import INTERRUPTED, CellPlan, measure_cell
from specforge.measurement.conditions import keep_conditions
from specforge.measurement.earlier import read_earlier
from specforge.plugin.entries import CellEntry
from specforge.plugin.parallel.worker import send
from specforge.plugin.replay import CLOCK, replay
from specforge.plugin.run import Run, ServerOfRun
from specforge.plugin.state import ledger_of, run_of
from specforge.plugin.terminal import Terminal
from specforge.results.record import CellRecord


def measure_item(item: pytest.Item, server: ServerOfRun, spec: BenchmarkSpec, benchmark: Any) -> CellRecord:
    """Measures the item's cell, gives it to pytest-benchmark and to the run's file, and fails or skips the test.

    A cell that fails is kept first, so that what was measured is not lost with it.
    """
    run = run_of(item.config)
    if server.target is None:
        pytest.fail(server.failure or "there is no server", pytrace=False)
    try:
        plan = _plan(run, server, spec)
        total = len(plan.benchmark.prompts) * plan.rounds
        with Terminal(item.config).bar(item.name, total) as progress:
            record = measure_cell(server.target, plan, progress, run.prepared)
    except SpecForgeError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    if record["rows"] is not None:
        record["rows"]["path"] = run.files.relative(record["rows"]["path"])
    durations = tuple(round_["duration"] for round_ in record["metrics"]["rounds"])
    _judge(record, run.settings.max_failed)
    benchmark.group = str(spec)
    benchmark.extra_info.update(record)
    # The fixture's dictionary and the entry's are one, so that what the end of the run adds is in both.
    entry = CellEntry(item.name, item.nodeid, str(spec), *_parameters(item), benchmark.extra_info, durations)
    benchmark.params = entry.params  # as text, which goes into JSON
    ledger = ledger_of(item.config)
    if ledger is not None:
        ledger.add(entry)
    else:
        send(item, entry)
    if durations:
        replay(benchmark, item.stash[CLOCK], durations)
    if record["reason"] == INTERRUPTED:
        raise KeyboardInterrupt
    if record["status"] == "skipped":
        pytest.skip(str(record["reason"]))
    if record["status"] != "ok":
        pytest.fail(str(record["reason"]), pytrace=False)
    return record


def _plan(run: Run, server: ServerOfRun, spec: BenchmarkSpec) -> CellPlan:
    settings = run.settings
    drawn = run.benchmarks.of(spec)
    rows_path = run.files.rows_path(str(server.config), str(spec))
    conditions = run.conditions(server)
    earlier = read_earlier(rows_path, drawn.prompts, run.rounds, conditions) if run.goes_on else None
    keep_conditions(rows_path, conditions, earlier.first_attempt if earlier is not None else 0)
    return CellPlan(
        config=run.record_config(server.config, server.server),
        spec=spec,
        benchmark=drawn,
        concurrency=server.config.batch_size,
        sampling=settings.sampling,
        max_new_tokens=settings.max_new_tokens.of(drawn.name, drawn.max_new_tokens),
        largest_tree=settings.largest_tree,
        rounds=run.rounds,
        scorer=run.scorers.of(drawn.name),
        unscored=run.scorers.why_none(drawn.name),
        rows_path=rows_path,
        earlier=earlier,
        environment=run.environment(server.server, drawn),
    )


def _judge(record: CellRecord, max_failed: int) -> None:
    """More failed requests than allowed fail the cell."""
    failed = record["metrics"]["failed"]
    if record["status"] == "ok" and failed > max_failed:
        record["status"] = "failed"
        record["reason"] = (
            f"{failed} of {len(record['requests']['row_id'])} requests failed (--max-failed {max_failed}); "
            f"the first: {record['metrics']['first_error']}"
        )


def _parameters(item: pytest.Item) -> tuple[str, dict[str, str]]:
    """The parameters' id, and the text of each by its name."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return "", {}
    return item.callspec.id, {name: str(value) for name, value in item.callspec.params.items()}

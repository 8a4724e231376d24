"""The table that ends a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from specforge.measurement.cell import INTERRUPTED
from specforge.plugin.ledger import Ledger
from specforge.plugin.resume import how_it_went_on
from specforge.results.cell import Cell
from specforge.results.record import CellRecord

_HEADINGS = ("configuration", "benchmark", "tok/s", "speedup", "accept", "accuracy", "notes")


def write_summary(reporter: Any, ledger: Ledger) -> None:
    """Writes configuration x benchmark: throughput, speedup, acceptance length, accuracy; then warnings and files."""
    records = [entry.record for entry in ledger.entries]
    label = records[0]["environment"].get("label")
    reporter.write_sep("=", "specforge" + (f": {label}" if label else ""))
    for line in table([_HEADINGS, *map(cells_of, records)]):
        reporter.write_line(line)
    told = (text for record in records for text in record["environment"]["warnings"])
    for warning in dict.fromkeys((*told, *ledger.warnings)):
        reporter.write_line(f"warning: {warning}", yellow=True)
    notes = (text for record in records for text in (*record["benchmark"]["notes"], *_unscored(record)))
    for note in dict.fromkeys((*notes, *_one_round(records))):
        reporter.write_line(f"note: {note}")
    for line in _resumed(ledger):
        reporter.write_line(line)
    for line in ledger.gate_lines:
        reporter.write_line(line, red=line.startswith("REGRESSION"))
    if ledger.unwritten is not None:
        reporter.write_line(f"record: {ledger.unwritten}", red=True)
    else:
        reporter.write_line(f"record: {ledger.files.json_path}")
        if any(record["reason"] == INTERRUPTED for record in records):
            reporter.write_line(f"interrupted: --resume {ledger.files.json_path} goes on")
    if ledger.report_line is not None:
        reporter.write_line(ledger.report_line)


def _unscored(record: CellRecord) -> Iterator[str]:
    """Why there is no accuracy, where that is not for want of answers."""
    reason = record["metrics"]["reasons"].get("accuracy")
    if reason and record["status"] == "ok":
        yield f"{record['benchmark']['spec']}: no accuracy: {reason}"


def _one_round(records: Sequence[CellRecord]) -> Iterator[str]:
    """What the intervals of speedup leave out, where a cell was measured once."""
    if any(record["metrics"]["speedup"] is not None and len(record["metrics"]["rounds"]) == 1 for record in records):
        yield "speedup of one round: its interval knows how prompts differ, not how the machine does; --rounds 5 tells"


def _resumed(ledger: Ledger) -> Iterator[str]:
    """What ``--resume`` kept, what was measured, and how."""
    if ledger.resumed is None:
        return
    measured = [entry for entry in ledger.entries if entry.test in ledger.measured]
    yield f"resumed: cells kept: {len(ledger.entries) - len(measured)}, measured: {len(measured)}"
    for entry in measured:
        yield f"resumed: {how_it_went_on(entry.record) or f'{Cell(entry.record).label}: measured anew'}"


def cells_of(record: CellRecord) -> tuple[str, ...]:
    """A record's line in the table."""
    config, metrics = record["config"], record["metrics"]
    numbers = [config.get(name) for name in ("batch_size", "num_steps", "topk", "num_draft_tokens")]
    name = ",".join("?" if number is None else str(number) for number in numbers)
    if config.get("algorithm"):
        name += f" {config['algorithm']}"
    return (
        name,
        record["benchmark"]["spec"],
        _number(metrics["output_throughput"], ".1f"),
        _speedup(metrics),
        _number(metrics["acceptance_length"], ".2f"),
        _accuracy(metrics),
        _remarks(record),
    )


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


def _speedup(metrics: dict[str, Any]) -> str:
    interval = metrics.get("speedup_interval")
    low_high = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    return _number(metrics["speedup"], ".2f", "x") + low_high


def _accuracy(metrics: dict[str, Any]) -> str:
    if metrics["accuracy"] is None:
        return "-"
    interval = metrics["accuracy_interval"]
    low_high = f" [{interval[0]:.1%}, {interval[1]:.1%}]" if interval else ""
    return f"{metrics['accuracy']:.1%}{low_high}"


def _remarks(record: CellRecord) -> str:
    metrics, answers = record["metrics"], len(record["requests"]["row_id"])
    remarks = [record["status"]] if record["status"] != "ok" else []
    for name, text in (
        ("failed", "failed"),
        ("retried", "retried"),
        ("degenerate", "loops"),
        ("truncated", "cut"),
        ("too_long", "too long"),
    ):
        if metrics[name]:
            remarks.append(f"{metrics[name]} of {answers} {text}")
    return ", ".join(remarks)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of left-aligned columns, two spaces apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]

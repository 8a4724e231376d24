"""The page's table of cells, and what it says of where a run was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specforge.metrics.catalog import CATALOG
from specforge.results.cell import Cell
from specforge.results.load import SavedRun

_COUNTS = (
    ("degenerate", "loops"),
    ("truncated", "cut at the limit"),
    ("truncated_thinking", "cut while thinking"),
    ("failed", "failed"),
    ("retried", "retried"),
    ("too_long", "too long"),
)
_LEFT_OUT = ("warnings", "label")


def cell_rows(runs: Sequence[SavedRun]) -> Iterator[dict[str, Any]]:
    """One row a cell: ``run, config, algorithm, benchmark, values, remarks``.

    A value is (name, text, interval, why it is null), each a text.
    """
    for run in runs:
        for cell in map(Cell, run.cells):
            yield {
                "run": run.label,
                "config": cell.config,
                "algorithm": cell.record["config"].get("algorithm") or "",
                "benchmark": cell.benchmark,
                "values": list(_values(cell)),
                "remarks": ", ".join(_remarks(cell)),
            }


def _values(cell: Cell) -> Iterator[tuple[str, str, str, str]]:
    for metric in CATALOG:
        value = metric.value(cell.metrics)
        edges = cell.metrics.get(f"{metric.name}_interval")
        interval = ""
        if value is not None and edges:
            scale, digits = (100, 1) if metric.is_share else (1, 2)
            interval = f"[{scale * edges[0]:.{digits}f}, {scale * edges[1]:.{digits}f}]"
        why = "" if value is not None else cell.reason(metric) or ""
        yield metric.name.replace("_", " "), metric.show(value), interval, why
        if metric.name == "acceptance_length":
            efficiency = cell.metrics.get("efficiency")
            yield "efficiency", "–" if efficiency is None else f"{efficiency:.2f}", "", ""


def _remarks(cell: Cell) -> Iterator[str]:
    if cell.record["status"] != "ok":
        yield f"{cell.record['status']}: {cell.record['reason'] or 'no reason given'}"
    answers = len(cell.record["requests"].get("row_id", []))
    yield from (f"{cell.metrics[name]} of {answers} {text}" for name, text in _COUNTS if cell.metrics.get(name))


def surroundings(run: SavedRun) -> list[tuple[str, str]]:
    """Where a run was made, as (name, text): what all its cells say alike, and how what they were asked was asked."""
    environments = [dict(_leaves("", record["environment"])) for record in run.cells]
    shared = [
        (name, text)
        for name, text in environments[0].items()
        if all(environment.get(name) == text for environment in environments)
    ]
    benchmarks = {Cell(record).benchmark: record["benchmark"] for record in run.cells}
    for name, benchmark in benchmarks.items():
        source = {key: value for key, value in (benchmark.get("source") or {}).items() if value is not None}
        asked = {"max_new_tokens": benchmark.get("max_new_tokens"), **(benchmark.get("sampling") or {}), **source}
        shared.append((name, ", ".join(f"{key} {value}" for key, value in asked.items())))
    return shared


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _LEFT_OUT:
                yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list):
        yield name, " ".join(map(str, value))
    elif value is not None:
        yield name, str(value)

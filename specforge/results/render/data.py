"""A comparison for programs: JSON and CSV with the same fields."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from specforge.results.change import Comparison
from specforge.results.compare import RunComparison
from specforge.results.gate import Finding

FIELDS = (
    "base",
    "new",
    "config",
    "benchmark",
    "metric",
    "unit",
    "before",
    "after",
    "change",
    "change_low",
    "change_high",
    "change_is",
    "p_worse",
    "p_better",
    "mark",
    "verdict",
    "tolerance",
    "p_gate",
    "why",
)
"""The columns: ``change`` with its 95 % interval is a fraction of ``before`` where ``change_is`` is ``relative``, else
a difference; ``p_worse`` and ``p_better`` are one-sided and uncorrected, ``p_gate`` is corrected (Holm); ``why`` says
why there is no test, or why the gate is undecided."""


def rows(comparisons: Sequence[RunComparison]) -> Iterator[dict[str, Any]]:
    """One row for each metric of each cell of each run."""
    for one in comparisons:
        findings = {_key(f.comparison): f for f in one.gate.findings if f.comparison} if one.gate else {}
        for comparison, mark in zip(one.comparisons, one.marks, strict=True):
            yield _row(one, comparison, mark, findings.get(_key(comparison)))


def _key(comparison: Comparison) -> tuple[object, str]:
    return comparison.pair.new.key, comparison.metric.name


def _row(one: RunComparison, comparison: Comparison, mark: str, finding: Finding | None) -> dict[str, Any]:
    change, metric = comparison.change, comparison.metric
    return {
        "base": one.base.label,
        "new": one.new.label,
        "config": comparison.pair.new.config,
        "benchmark": comparison.pair.new.benchmark,
        "metric": metric.name,
        "unit": "" if metric.is_share else metric.unit,
        "before": comparison.before,
        "after": comparison.after,
        "change": None if change is None else change.estimate,
        "change_low": None if change is None else change.low,
        "change_high": None if change is None else change.high,
        "change_is": None if change is None else ("relative" if change.relative else "difference"),
        "p_worse": None if change is None else comparison.p_worse,
        "p_better": None if change is None else comparison.p_better,
        "mark": mark,
        "verdict": None if finding is None else finding.verdict.value,
        "tolerance": None if finding is None else finding.tolerance.text,
        "p_gate": None if finding is None else finding.p_value,
        "why": comparison.why if finding is None else finding.why,
    }


def as_json(comparisons: Sequence[RunComparison]) -> str:
    """``{"format": 1, "comparisons": [...]}``: for each run its rows, warnings, unshared cells and the gate's lines."""
    document = {
        "format": 1,
        "comparisons": [
            {
                "base": one.base.label,
                "new": one.new.label,
                "rows": list(rows([one])),
                "warnings": one.pairing.warnings,
                "only_in_base": one.pairing.only_base,
                "only_in_new": one.pairing.only_new,
                "gate": None if one.gate is None else {"failed": one.gate.failed(), "lines": one.gate.lines},
            }
            for one in comparisons
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_csv(comparisons: Sequence[RunComparison]) -> str:
    """A heading and one line for each metric of each cell of each run; empty fields for null."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(comparisons))
    return text.getvalue()

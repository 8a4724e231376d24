"""A comparison for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from specforge.results.compare import RunComparison
from specforge.results.render.table import gate_lines, headings, lines, remarks

_SIGNS = {"REGRESSION": "❌", "VANISHED": "❌", "UNDECIDED": "⚠️", "IMPROVED": "🚀"}


def as_markdown(comparisons: Sequence[RunComparison]) -> str:
    """The gate's findings first, then the table, then remarks."""
    header = headings(comparisons)
    parts = [f"### {header[3]} → {', '.join(one.new.label for one in comparisons)}", ""]
    findings = [f"- {_signed(line)}" for line in gate_lines(comparisons)]
    if findings:
        parts += [*findings, ""]
    parts.append(_row(header))
    parts.append(_row(["---"] * 3 + ["---:"] * (len(header) - 3)))
    parts += [_row(line) for line in lines(comparisons)]
    notes = [f"- {_escaped(remark)}" for remark in remarks(comparisons)]
    if notes:
        parts += ["", *notes]
    return "\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _signed(line: str) -> str:
    verdict = next((word for word in _SIGNS if f"{word} " in line), None)
    return f"{_SIGNS[verdict]} {_escaped(line)}" if verdict else _escaped(line)

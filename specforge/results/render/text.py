"""A comparison for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from specforge.results.compare import RunComparison
from specforge.results.render.table import gate_lines, headings, lines, remarks

_LEFT = 3  # configuration, benchmark and metric stand left, numbers right


def as_text(comparisons: Sequence[RunComparison]) -> str:
    """Aligned columns, then remarks, then the gate."""
    rows = [headings(comparisons), *lines(comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = [
        "  ".join(
            text.ljust(width) if column < _LEFT else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    table.insert(1, "-" * max(map(len, table)))
    return "\n".join([*table, *remarks(comparisons), *gate_lines(comparisons)]) + "\n"

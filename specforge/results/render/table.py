"""The table that text and Markdown share: a line for each metric of each cell, two columns for each compared run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specforge.results.compare import RunComparison

Line = tuple[str, ...]


def headings(comparisons: Sequence[RunComparison]) -> Line:
    """The headings: the cell, the metric, the base run, then every new run and its change."""
    runs = [heading for one in comparisons for heading in (one.new.label, "change")]
    return ("configuration", "benchmark", "metric", comparisons[0].base.label, *runs)


def lines(comparisons: Sequence[RunComparison]) -> Iterator[Line]:
    """The lines, cell by cell; a cell's name stands in its first line only."""
    found = [
        {
            (comparison.pair.base.key, comparison.metric.name): (comparison, mark)
            for comparison, mark in zip(one.comparisons, one.marks, strict=True)
        }
        for one in comparisons
    ]
    last = None
    for key in dict.fromkeys(key for by_key in found for key in by_key):
        sides = [by_key.get(key) for by_key in found]
        known = next(side[0] for side in sides if side is not None)
        cell, metric = known.pair.base, known.metric
        name = (cell.config, cell.benchmark) if key[0] != last else ("", "")
        last = key[0]
        columns: list[str] = []
        for side in sides:
            if side is None:
                columns += ["–", "–"]
            else:
                comparison, mark = side
                columns += [metric.show(comparison.after), " ".join(filter(None, (comparison.show_change(), mark)))]
        yield (*name, metric.name, metric.show(known.before), *columns)


def remarks(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    """What the table can't say: warnings, and the cells that are not shared."""
    yield from dict.fromkeys(note for one in comparisons for note in (*one.base.notes, *one.new.notes))
    for one in comparisons:
        prefix = f"{one.new.label}: " if len(comparisons) > 1 else ""
        yield from (f"{prefix}warning: {warning}" for warning in one.pairing.warnings)
        yield from (f"only in {one.base.label}: {label}" for label in one.pairing.only_base)
        yield from (f"only in {one.new.label}: {label}" for label in one.pairing.only_new)


def gate_lines(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    """What the gate says of each run; nothing where nothing is gated."""
    for one in comparisons:
        if one.gate is not None:
            prefix = f"{one.new.label}: " if len(comparisons) > 1 else ""
            yield from (prefix + line for line in one.gate.lines)

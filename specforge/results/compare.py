"""Compares one run with others: what changed, what was refused, and what the gate says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specforge.metrics.catalog import CATALOG
from specforge.metrics.statistics import holm
from specforge.results.change import Comparison, compare_cells
from specforge.results.gate import LEVEL, GateResult, gate
from specforge.results.load import SavedRun
from specforge.results.pairing import Pairing, pair_runs
from specforge.results.tolerance import Tolerance


@dataclass(frozen=True)
class RunComparison:
    """One run against the base run.

    Attributes:
        base: the run compared against.
        new: the run in question.
        pairing: their cells.
        comparisons: every metric that either measured, cell by cell.
        marks: for each of them ``better`` or ``worse`` where the change is significant after Holm's correction over
            all of them, else an empty text.
        gate: the gate's findings; None where nothing is gated.
    """

    base: SavedRun
    new: SavedRun
    pairing: Pairing
    comparisons: list[Comparison]
    marks: list[str]
    gate: GateResult | None


def compare_runs(
    base: SavedRun, news: Sequence[SavedRun], tolerances: Sequence[Tolerance] = (), *, force: bool = False
) -> list[RunComparison]:
    """Compares each of ``news`` with ``base``.

    Args:
        base: the run compared against.
        news: the runs in question.
        tolerances: what is gated; empty for nothing.
        force: compare cells that were asked different things too.

    Raises:
        RecordError: two runs can't be compared.
        UsageError: a tolerance is for a cell that the runs don't share.
    """
    return [_compare(base, new, tolerances, force) for new in news]


def _compare(base: SavedRun, new: SavedRun, tolerances: Sequence[Tolerance], force: bool) -> RunComparison:
    pairing = pair_runs(base, new, force=force)
    comparisons = compare_cells(CATALOG, pairing.pairs)
    judged = gate(pairing.pairs, tolerances) if tolerances else None
    return RunComparison(base, new, pairing, comparisons, _marks(comparisons), judged)


def _marks(comparisons: Sequence[Comparison]) -> list[str]:
    tested = [index for index, comparison in enumerate(comparisons) if comparison.change is not None]
    marks = [""] * len(comparisons)
    for word, p_values in (
        ("better", [comparisons[index].p_better for index in tested]),
        ("worse", [comparisons[index].p_worse for index in tested]),
    ):
        for index, adjusted in zip(tested, holm(p_values), strict=True):
            if adjusted <= LEVEL:
                marks[index] = word
    return marks

"""The gate: which changes are regressions.

A regression is both beyond its tolerance and not to be explained by noise, after Holm's correction for the number of
cells and metrics gated. What the rounds or prompts at hand can't decide is *undecided*, said loudly.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from specforge.metrics.catalog import Metric
from specforge.metrics.statistics import holm
from specforge.results.change import Comparison, compare_metric
from specforge.results.pairing import Pair
from specforge.results.tolerance import Tolerance, check_scopes, tolerance_for

LEVEL = 0.05
"""The chance of even one false alarm in the whole gate."""

TOO_COARSE = 3.0
"""A test that could only have shown a loss of this many tolerances decides nothing."""


class Verdict(enum.Enum):
    """What the gate says of one metric of one cell."""

    REGRESSION = "REGRESSION"
    VANISHED = "VANISHED"
    UNDECIDED = "UNDECIDED"
    IMPROVED = "IMPROVED"
    OK = "OK"


@dataclass(frozen=True)
class Finding:
    """One gated metric of one cell.

    Attributes:
        verdict: what the gate says.
        metric: the metric.
        comparison: before and after; None where no shared cell measured the metric in either run.
        tolerance: the tolerance that counted.
        p_value: the chance of such a loss where nothing changed, after Holm's correction; None where not tested.
        why: what made it undecided or vanished; None otherwise.
    """

    verdict: Verdict
    metric: Metric
    comparison: Comparison | None
    tolerance: Tolerance
    p_value: float | None = None
    why: str | None = None

    @property
    def line(self) -> str:
        """One line: verdict, cell, metric, before, after, change with interval, tolerance, reason."""
        if self.comparison is None:
            return f"{self.verdict.value} {self.metric.name}: {self.why}"
        shown = self.comparison
        values = f"{self.metric.show(shown.before)} -> {self.metric.show(shown.after)}"
        change = "" if shown.before is None or shown.after is None else f", {shown.show_change()}"
        why = f": {self.why}" if self.why else ""
        return (
            f"{self.verdict.value} {shown.pair.new.label} {self.metric.name} {values}{change}, "
            f"tolerance {self.tolerance.text}{why}"
        )


@dataclass(frozen=True)
class GateResult:
    """The gate's findings, cell by cell."""

    findings: list[Finding]

    def of(self, *verdicts: Verdict) -> list[Finding]:
        """The findings with one of these verdicts."""
        return [finding for finding in self.findings if finding.verdict in verdicts]

    def failed(self, *, fail_on_undecided: bool = False) -> bool:
        """Whether the job should fail."""
        bad = self.of(Verdict.REGRESSION, Verdict.VANISHED)
        return bool(bad) or (fail_on_undecided and bool(self.of(Verdict.UNDECIDED)))

    @property
    def lines(self) -> list[str]:
        """What to tell the user: everything but what is simply fine, then a line that sums up."""
        order = (Verdict.REGRESSION, Verdict.VANISHED, Verdict.UNDECIDED, Verdict.IMPROVED)
        told = [finding.line for verdict in order for finding in self.of(verdict)]
        counts = ", ".join(f"{len(self.of(v))} {v.value.lower()}" for v in (*order, Verdict.OK) if self.of(v))
        return [*told, f"gate: {counts}"]


def gate(pairs: Sequence[Pair], tolerances: Sequence[Tolerance]) -> GateResult:
    """Judges every gated metric of every shared cell.

    Args:
        pairs: the shared cells, from :func:`specforge.results.pairing.pair_runs`.
        tolerances: from :func:`specforge.results.tolerance.parse_tolerances`; the most specific one counts.

    Raises:
        UsageError: a tolerance is for a cell that the runs don't share.
    """
    check_scopes(tolerances, [pair.new for pair in pairs])
    gated: list[tuple[Comparison, Tolerance]] = []
    nothing: list[Finding] = []
    for metric in dict.fromkeys(tolerance.metric for tolerance in tolerances):
        found = [
            (comparison, tolerance)
            for comparison in compare_metric(metric, pairs)
            if (tolerance := tolerance_for(tolerances, metric, comparison.pair.new)) is not None
        ]
        gated += found
        if not found:
            tolerance = next(t for t in tolerances if t.metric is metric)
            nothing.append(
                Finding(Verdict.UNDECIDED, metric, None, tolerance, why="neither run measured it in any shared cell")
            )
    order = {id(pair): position for position, pair in enumerate(pairs)}
    gated.sort(key=lambda entry: order[id(entry[0].pair)])
    tested = [index for index, (comparison, _) in enumerate(gated) if comparison.change is not None]
    worse = dict(zip(tested, holm([gated[index][0].p_worse for index in tested]), strict=True))
    better = dict(zip(tested, holm([gated[index][0].p_better for index in tested]), strict=True))
    findings = [
        _judge(comparison, tolerance, worse.get(index), better.get(index), len(tested))
        for index, (comparison, tolerance) in enumerate(gated)
    ]
    return GateResult([*findings, *nothing])


def _judge(
    comparison: Comparison, tolerance: Tolerance, p_worse: float | None, p_better: float | None, tests: int
) -> Finding:
    def finding(verdict: Verdict, why: str | None = None) -> Finding:
        return Finding(verdict, comparison.metric, comparison, tolerance, p_worse, why)

    change = comparison.change
    if comparison.after is None:
        return finding(Verdict.VANISHED, comparison.why)
    if change is None or comparison.before is None or p_worse is None or p_better is None:
        return finding(Verdict.UNDECIDED, comparison.why)
    if change.is_none:
        return finding(Verdict.OK)
    before = comparison.before
    beyond = tolerance.worsening(change.estimate, change.relative, before) > tolerance.amount
    if beyond and p_worse <= LEVEL:
        return finding(Verdict.REGRESSION)
    if p_better <= LEVEL:
        return finding(Verdict.IMPROVED)
    if not tolerance.amount:
        return finding(Verdict.OK)
    downwards = -1 if comparison.metric.higher_is_better else 1
    smallest = change.resolution(LEVEL / tests, upwards=downwards > 0)
    units = f"{change.units} {'prompts' if comparison.metric.design.by_prompt else 'rounds'}"
    shown = f"{100 * smallest:.1f} {'pp' if comparison.metric.is_share else '%'}"
    if beyond:
        return finding(
            Verdict.UNDECIDED, f"noise alone may have moved it as far; {units} can only show losses beyond {shown}"
        )
    if tolerance.worsening(downwards * smallest, change.relative, before) > TOO_COARSE * tolerance.amount:
        return finding(Verdict.UNDECIDED, f"{units} can only show losses beyond {shown}")
    return finding(Verdict.OK)

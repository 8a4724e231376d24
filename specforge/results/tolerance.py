"""``--fail-on METRIC[@SCOPE...]:TOLERANCE``: how much worse a metric may become."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specforge.errors import UsageError
from specforge.matrix import SpecConfig
from specforge.metrics.catalog import Metric, find_metric
from specforge.results.cell import Cell

_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(%|pp|)\Z")


class Kind(enum.Enum):
    """What an amount is of."""

    RELATIVE = "%"
    POINTS = "pp"
    ABSOLUTE = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """One ``--fail-on``.

    Attributes:
        metric: what is gated.
        amount: how much worse it may become: a fraction of the base value, a fraction of 1 (``pp``), or the
            metric's own unit.
        kind: which of these.
        scopes: the configurations and benchmarks that it is for, as text; empty for all cells.
        text: as the user wrote the amount.
    """

    metric: Metric
    amount: float
    kind: Kind
    scopes: tuple[str, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Reads ``throughput:5%``, ``accuracy:2pp``, ``acceptance_length:0.1``, ``throughput@4,3,1,4:3%``.

        Raises:
            UsageError: it has another shape, or there is no such metric.
        """
        subject, colon, amount = text.rpartition(":")
        name, *scopes = subject.split("@")
        if not colon or not all(scope.strip() for scope in scopes):
            raise UsageError(
                f"--fail-on: {text!r} is not a tolerance; expected METRIC:TOLERANCE or METRIC@SCOPE:TOLERANCE, "
                "such as throughput:5%, accuracy:2pp or throughput@4,3,1,4:3%"
            )
        metric = find_metric(name)
        match = _AMOUNT.match(amount.strip())
        if match is None:
            raise UsageError(
                f"--fail-on: {text!r}: the tolerance {amount!r} is neither a percentage (5%), percentage points (2pp) "
                "nor a number in the metric's unit (0.1)"
            )
        kind = Kind(match[2])
        if kind is Kind.POINTS and not metric.is_share:
            raise UsageError(
                f"--fail-on: {text!r}: percentage points are for shares; {metric.name} takes % or a number"
            )
        number = float(match[1]) / (1 if kind is Kind.ABSOLUTE else 100)
        return cls(metric, number, kind, tuple(_normal(scope) for scope in scopes), match[1] + _suffix(kind, metric))

    def covers(self, cell: Cell) -> bool:
        """Whether the tolerance is for this cell."""
        config = cell.config.partition(" ")[0]
        names = {config, cell.benchmark.lower(), str(cell.record["benchmark"].get("name")).lower()}
        return all(scope in names for scope in self.scopes)

    def worsening(self, change: float, relative: bool, before: float) -> float:
        """How much worse a change is, in this tolerance's terms; negative for an improvement.

        Args:
            change: new ÷ base − 1 where ``relative``, else new − base.
            before: the base value.
        """
        sign = -1 if self.metric.higher_is_better else 1
        as_ratio = self.kind is Kind.RELATIVE
        if as_ratio == relative:
            return sign * change
        if as_ratio:
            return sign * change / before if before else math.copysign(math.inf, sign * change) if change else 0.0
        return sign * change * before


def _suffix(kind: Kind, metric: Metric) -> str:
    if kind is Kind.ABSOLUTE:
        return f" {metric.unit}" if metric.unit in ("s", "tok/s") else ""
    return f" {kind.value}"


def _normal(scope: str) -> str:
    scope = scope.strip().lower()
    try:
        return str(SpecConfig.parse(scope))
    except UsageError:
        return scope


def parse_tolerances(texts: Iterable[str]) -> list[Tolerance]:
    """Reads every ``--fail-on``.

    Raises:
        UsageError: one of them doesn't parse.
    """
    return [Tolerance.parse(text) for text in texts]


def tolerance_for(tolerances: Sequence[Tolerance], metric: Metric, cell: Cell) -> Tolerance | None:
    """The one that counts for a metric of a cell: the most specific, and of equally specific ones the last."""
    fitting = [t for t in tolerances if t.metric is metric and t.covers(cell)]
    return max(reversed(fitting), key=lambda t: len(t.scopes), default=None)


def check_scopes(tolerances: Sequence[Tolerance], cells: Sequence[Cell]) -> None:
    """Refuses a scope that no cell answers to: a slip there would gate nothing, silently.

    Raises:
        UsageError: for the first such scope.
    """
    for tolerance in tolerances:
        if tolerance.scopes and not any(tolerance.covers(cell) for cell in cells):
            known = sorted({cell.config for cell in cells} | {cell.benchmark for cell in cells})
            raise UsageError(
                f"--fail-on: {tolerance.metric.name}@{'@'.join(tolerance.scopes)}: no cell that both runs have; "
                f"they have {', '.join(known)}"
            )

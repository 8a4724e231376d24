"""What changed between two runs: each metric of each shared cell, with its test where one can be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specforge.metrics.catalog import Design, Metric
from specforge.metrics.significance import (
    Array,
    Change,
    Noise,
    change_of_log_ratio,
    change_of_ratio,
    change_of_share,
    moderated_noise,
)
from specforge.results.cell import Cell, shared_prompts
from specforge.results.pairing import Pair

FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Comparison:
    """One metric of one cell in two runs.

    Attributes:
        pair: the cell.
        metric: the metric.
        before: its value in the base run; None where it was not measured there.
        after: its value in the new run.
        change: how it moved; None where that can't be told.
        why: why not, in one line.
    """

    pair: Pair
    metric: Metric
    before: float | None
    after: float | None
    change: Change | None
    why: str | None = None

    @property
    def p_worse(self) -> float:
        """The chance to see a move this far for the worse where nothing changed; 1 where it can't be told."""
        if self.change is None or self.change.is_none:
            return 1.0
        return self.change.p_down if self.metric.higher_is_better else self.change.p_up

    @property
    def p_better(self) -> float:
        """The same for the better."""
        if self.change is None or self.change.is_none:
            return 1.0
        return self.change.p_up if self.metric.higher_is_better else self.change.p_down

    def show_change(self) -> str:
        """The change with its interval, such as ``-15.2 % [-17.0, -13.4]``; without a test the bare change."""
        unit = "pp" if self.metric.is_share else "%"
        if self.change is not None:
            low, high = 100 * self.change.low, 100 * self.change.high
            return f"{_signed(100 * self.change.estimate)} {unit} [{_signed(low)}, {_signed(high)}]"
        if self.before is None or self.after is None:
            return "–"
        if self.metric.is_share:
            return f"{_signed(100 * (self.after - self.before))} pp"
        return f"{_signed(100 * (self.after / self.before - 1))} %" if self.before else "–"


def _signed(number: float) -> str:
    return f"{round(number, 1) + 0.0:+.1f}"


def compare_metric(metric: Metric, pairs: Sequence[Pair]) -> list[Comparison]:
    """One metric over all shared cells; those that neither run measured are left out.

    All cells are needed at once, since those of a speed metric share the estimate of their noise.
    """
    tests = _tests(metric, pairs)
    found = []
    for pair, (change, why) in zip(pairs, tests, strict=True):
        before, after = metric.value(pair.base.metrics), metric.value(pair.new.metrics)
        if before is None and after is None:
            continue
        if before is None or after is None:
            side, cell = ("base", pair.base) if before is None else ("new", pair.new)
            change, why = None, f"not measured in the {side} run: {cell.reason(metric) or 'no reason given'}"
        found.append(Comparison(pair, metric, before, after, change, None if change is not None else why))
    return found


_Test = tuple[Change | None, str | None]


def _tests(metric: Metric, pairs: Sequence[Pair]) -> list[_Test]:
    if metric.design is Design.RATIO:
        return [_ratio(metric, pair) for pair in pairs]
    if metric.design is Design.SHARE:
        return [_share(metric, pair) for pair in pairs]
    (column,) = metric.columns
    rounds = [(pair.base.log_rounds(column), pair.new.log_rounds(column)) for pair in pairs]
    noise = moderated_noise(rounds)
    parts = {pair.new.key: _part(base, new, own) for pair, (base, new), own in zip(pairs, rounds, noise, strict=True)}
    if metric.design is Design.SPEEDUP:
        return [_speedup(pair, parts) for pair in pairs]
    return [_of_part(parts[pair.new.key]) for pair in pairs]


_Part = tuple[Array, Array, Noise, Noise] | str


def _part(base: Array, new: Array, noise: Noise | None) -> _Part:
    fewest = min(len(base), len(new))
    if noise is None or fewest < FEWEST_ROUNDS:
        return (
            f"{len(base)} usable rounds before and {len(new)} after; "
            f"noise can be told from {FEWEST_ROUNDS} rounds on (--rounds)"
        )
    return base, new, noise, noise


def _of_part(part: _Part) -> _Test:
    return (None, part) if isinstance(part, str) else (change_of_log_ratio([part]), None)


def _speedup(pair: Pair, parts: Mapping[tuple[object, ...], _Part]) -> _Test:
    own, baseline = parts[pair.new.key], parts.get(pair.new.baseline_key)
    if baseline is None:
        return None, "the target-only cell of the same batch size is not in both runs"
    for part in (own, baseline):
        if isinstance(part, str):
            return None, part
    return change_of_log_ratio([part for part in (own, baseline) if not isinstance(part, str)]), None


def _ratio(metric: Metric, pair: Pair) -> _Test:
    shared = shared_prompts(pair.base, pair.new, metric.columns)
    if shared is None:
        return None, _no_prompts(metric, pair)
    (base_top, base_bottom), (new_top, new_bottom) = shared
    change = change_of_ratio((base_top, base_bottom), (new_top, new_bottom))
    return change, None if change is not None else "fewer than two prompts to tell from"


def _share(metric: Metric, pair: Pair) -> _Test:
    scorers = [cell.record["benchmark"].get("scorer") for cell in (pair.base, pair.new)]
    if metric.name == "accuracy" and scorers[0] != scorers[1]:
        return None, f"scored by {scorers[0]} before and by {scorers[1]} after"
    shared = shared_prompts(pair.base, pair.new, metric.columns)
    if shared is None:
        return None, _no_prompts(metric, pair)
    return change_of_share(shared[0][0], shared[1][0]), None


def _no_prompts(metric: Metric, pair: Pair) -> str:
    for side, cell in (("base", pair.base), ("new", pair.new)):
        missing = [name for name in metric.columns if cell.column(name) is None]
        if missing:
            return f"the {side} record has no {', '.join(missing)} by prompt"
    return "no prompt that both runs measured"


def compare_cells(metrics: Sequence[Metric], pairs: Sequence[Pair]) -> list[Comparison]:
    """Several metrics over all shared cells: cell by cell, in the metrics' order."""
    by_cell: dict[int, list[Comparison]] = {id(pair): [] for pair in pairs}
    for metric in metrics:
        for comparison in compare_metric(metric, pairs):
            by_cell[id(comparison.pair)].append(comparison)
    return [comparison for comparisons in by_cell.values() for comparison in comparisons]


def baseline_of(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """The target-only cell that a cell's speedup and losslessness refer to; None where the run has none."""
    return next((other for other in cells if other.key == cell.baseline_key and other.is_target_only), None)

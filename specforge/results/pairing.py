"""Which cells of two runs belong together, and whether comparing them means anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specforge.errors import RecordError
from specforge.results.cell import Cell
from specforge.results.load import SavedRun

CACHED_SHARE = 0.02  # shares of cached prompt tokens that differ by more make prefill incomparable
_SURROUNDINGS = ("backend", "machine", "gpus", "server", "template_hash", "max_model_len", "streamed", "route")
_OF_A_FILE = ("kind", "split", "few_shot")
_OF_THE_HUB = ("kind", "location", "revision", "split", "few_shot")


@dataclass(frozen=True)
class Pair:
    """The same cell of two runs."""

    base: Cell
    new: Cell


@dataclass(frozen=True)
class Pairing:
    """Two runs, cell by cell.

    Attributes:
        pairs: the cells that both have, in the new run's order.
        only_base: labels of the cells that only the base run has.
        only_new: labels of those that only the new one has.
        warnings: what differs in the surroundings, and what was forced: one line each.
    """

    pairs: list[Pair]
    only_base: list[str]
    only_new: list[str]
    warnings: list[str]


def pair_runs(base: SavedRun, new: SavedRun, *, force: bool = False) -> Pairing:
    """Matches cells by configuration and benchmark.

    Args:
        base: the run compared against.
        new: the run in question.
        force: compare cells that were asked different things too, and only warn.

    Raises:
        RecordError: the runs share no cell, or what was asked differs.
    """
    before = {cell.key: cell for cell in map(Cell, base.cells)}
    after = {cell.key: cell for cell in map(Cell, new.cells)}
    pairs = [Pair(before[key], cell) for key, cell in after.items() if key in before]
    if not pairs:
        raise RecordError(
            f"{base.label} and {new.label} have no cell in common: "
            f"{_some(before.values())} against {_some(after.values())}"
        )
    asked = {pair.new.label: difference for pair in pairs if (difference := asked_differently(pair))}
    if asked and not force:
        cell, difference = next(iter(asked.items()))
        more = f" (and {len(asked) - 1} more cells)" if len(asked) > 1 else ""
        raise RecordError(
            f"{base.label} and {new.label} can't be compared: {cell}: {difference}{more}; --force compares them anyway"
        )
    warnings = [f"{cell}: {difference} (forced)" for cell, difference in asked.items()]
    warnings += [*_measured_twice(base), *_measured_twice(new)]
    warnings += different_machines(base.machine, new.machine)
    warnings += _merged((pair.new.label, text) for pair in pairs for text in _surroundings(pair))
    return Pairing(
        pairs,
        [cell.label for key, cell in before.items() if key not in after],
        [cell.label for key, cell in after.items() if key not in before],
        warnings,
    )


def asked_differently(pair: Pair) -> str | None:
    """How what was asked differs: prompts, their text, the data's revision, sampling, token limit; None if nowhere."""
    base, new = pair.base.record["benchmark"], pair.new.record["benchmark"]
    source_keys = _OF_THE_HUB if (base.get("source") or {}).get("kind") == "hub" else _OF_A_FILE
    for what, before, after in (
        ("sampling", base.get("sampling"), new.get("sampling")),
        ("max_new_tokens", base.get("max_new_tokens"), new.get("max_new_tokens")),
        *(("source." + key, *((side.get("source") or {}).get(key) for side in (base, new))) for key in source_keys),
    ):
        if before != after:
            return f"{what} differs: {_differing(before, after)}"
    base_ids, new_ids = base.get("row_ids") or [], new.get("row_ids") or []
    if base_ids != new_ids:
        shared = len(set(base_ids) & set(new_ids))
        return f"the prompts differ: {len(base_ids)} against {len(new_ids)}, {shared} of them shared"
    for kind, what in (("static_turns", "text"), ("token_ids", "token ids")):
        before, after = ((side.get("hashes") or {}).get(kind) or [] for side in (base, new))
        changed = [
            row_id
            for row_id, one, other in zip(base_ids, before, after, strict=False)
            if one is not None and other is not None and one != other
        ]
        if changed:
            return f"the {what} of {len(changed)} of {len(base_ids)} prompts differs (the first is {changed[0]})"
    return None


def _differing(before: Any, after: Any) -> str:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return ", ".join(f"{key} {before.get(key)!r} against {after.get(key)!r}" for key in keys)
    return f"{before!r} against {after!r}"


def _surroundings(pair: Pair) -> Iterator[str]:
    base, new = pair.base.record["environment"], pair.new.record["environment"]
    for key in _SURROUNDINGS:
        yield from _leaves(key, base.get(key), new.get(key))
    one, other = (cell.metrics.get("cached_token_share") for cell in (pair.base, pair.new))
    if one is not None and other is not None and abs(one - other) > CACHED_SHARE:
        yield f"the share of cached prompt tokens differs: {one:.0%} against {other:.0%}"
    scorers = [cell.record["benchmark"].get("scorer") for cell in (pair.base, pair.new)]
    if scorers[0] != scorers[1] and None not in scorers:
        yield f"the scorer differs: {scorers[0]} against {scorers[1]}"
    for side, cell in (("base", pair.base), ("new", pair.new)):
        if cell.record["status"] != "ok":
            yield f"the {side} cell is {cell.record['status']}: {cell.record['reason'] or 'no reason given'}"


def _leaves(name: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            yield from _leaves(f"{name}.{key}", before.get(key), after.get(key))
    elif before != after and before is not None and after is not None:
        yield f"{name} differs: {before!r} against {after!r}"


def _measured_twice(run: SavedRun) -> Iterator[str]:
    """Cells that are the same to a comparison, such as one benchmark with 10 prompts and with 20."""
    times = Counter(cell.key for cell in map(Cell, run.cells))
    last = {cell.key: cell.label for cell in map(Cell, run.cells)}
    for key, count in times.items():
        if count > 1:
            yield f"{run.label}: {count} cells are alike, the last of them is compared: {last[key]}"


def different_machines(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A line where two runs' ``machine_info`` name different machines; none where they don't, or don't say."""
    if before.get("node") and after.get("node") and before["node"] != after["node"]:
        return [f"different machines: {before['node']} against {after['node']}"]
    return []


def _merged(found: Iterator[tuple[str, str]]) -> list[str]:
    """One line for each text; what concerns a single cell names it."""
    cells: dict[str, list[str]] = {}
    for cell, text in found:
        cells.setdefault(text, []).append(cell)
    return [f"{where[0]}: {text}" if len(where) == 1 else text for text, where in cells.items()]


def _some(cells: Iterable[Cell]) -> str:
    labels = [cell.label for cell in cells]
    return ", ".join(labels[:3]) + (", ..." if len(labels) > 3 else "") if labels else "no cell"

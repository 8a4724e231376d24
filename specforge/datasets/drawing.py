"""Which rows are asked: the same for every configuration, run and platform (design, section 3.7). Pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specforge.datasets.definition import DatasetDefinition, Row, SubsetAxis, subset_key


@dataclass(frozen=True, slots=True)
class IndexedRow:
    """A row with its place: its unique id and its number in the file or split."""

    row_id: str
    index: int
    row: Row


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows the user's subset names take.

    Attributes:
        requests: for each axis, the names asked for and the values that each stands for; empty where none was.
    """

    axes: tuple[SubsetAxis, ...]
    requests: tuple[tuple[tuple[str, frozenset[str]], ...], ...]

    @classmethod
    def of(cls, definition: DatasetDefinition, subsets: Sequence[str]) -> Selection:
        """Sorts the names by the axis that knows them; one that only the rows can tell goes to every open axis."""
        requests: list[list[tuple[str, frozenset[str]]]] = [[] for _ in definition.axes]
        for subset in subsets:
            expanded = [axis.expand(subset) for axis in definition.axes]
            certain = [
                place
                for place, (axis, values) in enumerate(zip(definition.axes, expanded, strict=True))
                if values is not None
                and (axis.values is not None or subset_key(subset) in map(subset_key, axis.groups))
            ]
            for place in certain or [place for place, values in enumerate(expanded) if values is not None]:
                values = frozenset(subset_key(value) for value in expanded[place] or ())
                requests[place].append((subset, values))
        return cls(definition.axes, tuple(tuple(asked) for asked in requests))

    def labels(self) -> frozenset[str] | None:
        """The labels of the parts to read, as keys; None for every part."""
        for axis, asked in zip(self.axes, self.requests, strict=True):
            if axis.labelled:
                if asked:
                    return frozenset().union(*(values for _, values in asked))
                return frozenset(map(subset_key, axis.default)) or None
        return None

    def turn(self, row: IndexedRow) -> tuple[str, ...] | None:
        """The turn in which the row is drawn, by the names asked for, else by the first axis; None if not selected.

        Within an axis the names add up; names of different axes narrow each other.
        """
        if not any(self.requests):
            return (self.axes[0].of(row.row),) if self.axes else ("",)
        turn = []
        for axis, asked in zip(self.axes, self.requests, strict=True):
            if not asked:
                continue
            key = subset_key(axis.of(row.row))
            name = next((name for name, values in asked if key in values), None)
            if name is None:
                return None
            turn.append(name)
        return tuple(turn)

    def place(self, turn: tuple[str, ...]) -> tuple[object, ...]:
        """Sorts turns: in the order asked for, else in the published order, else by name."""
        if not any(self.requests):
            values = self.axes[0].values if self.axes else None
            known = (values or ()).index(turn[0]) if turn[0] in (values or ()) else len(values or ())
            return (known, turn[0])
        asked = [[name for name, _ in names] for names in self.requests if names]
        return tuple(names.index(name) for names, name in zip(asked, turn, strict=True))


def draw(rows: Iterable[IndexedRow], selection: Selection, seed: int) -> list[IndexedRow]:
    """All selected rows in drawing order: by sha256(seed:row id) within each turn, one of each turn after the other.

    Any prefix of the list is the draw of that size.
    """
    turns: dict[tuple[str, ...], list[IndexedRow]] = {}
    for row in rows:
        turn = selection.turn(row)
        if turn is not None:
            turns.setdefault(turn, []).append(row)
    queues = [sorted(turns[turn], key=lambda row: _order(seed, row)) for turn in sorted(turns, key=selection.place)]
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def unique_ids(ids: Iterable[str]) -> list[str]:
    """The same ids, a repeated one with ``#2``, ``#3`` ... appended in order of appearance."""
    counts: dict[str, int] = {}
    unique = []
    for row_id in ids:
        counts[row_id] = counts.get(row_id, 0) + 1
        unique.append(row_id if counts[row_id] == 1 else f"{row_id}#{counts[row_id]}")
    return unique


def _order(seed: int, row: IndexedRow) -> bytes:
    return hashlib.sha256(f"{seed}:{row.row_id}".encode()).digest()

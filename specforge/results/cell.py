"""A record seen as units: its rounds, and its prompts with their rounds summed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from specforge.metrics.catalog import Metric
from specforge.metrics.significance import Array
from specforge.results.record import CellRecord, cell_key


class Cell:
    """One cell of a run, ready for comparison."""

    def __init__(self, record: CellRecord) -> None:
        self.record = record
        self.key = cell_key(record)
        self.metrics = record["metrics"]

    @property
    def config(self) -> str:
        """The configuration's text form, with the request rate where there is one."""
        return config_text(self.record)

    @property
    def benchmark(self) -> str:
        """The benchmark's text form."""
        return str(self.record["benchmark"].get("spec") or self.record["benchmark"].get("name"))

    @property
    def label(self) -> str:
        """How lines name the cell."""
        return f"{self.config} {self.benchmark}"

    @property
    def is_target_only(self) -> bool:
        """Whether nothing is drafted; an unknown configuration (null) is not known to be that."""
        config = self.record["config"]
        return config.get("num_steps") == 0 and config.get("num_draft_tokens") == 0

    @property
    def baseline_key(self) -> tuple[Any, ...]:
        """The key of the target-only cell of the same batch size and benchmark."""
        return (self.key[0], 0, 0, 0, *self.key[4:])

    def reason(self, metric: Metric) -> str | None:
        """Why a metric is null, as the record says."""
        reasons = self.metrics.get("reasons") or {}
        return reasons.get(metric.path[0]) or self.record["reason"]

    def log_rounds(self, column: str) -> Array:
        """The logarithms of a column of ``metrics.rounds``, of the rounds that are usable for speed."""
        rounds = self.metrics.get("rounds") or []
        values = [entry.get(column) for entry in rounds if entry.get("usable", True)]
        return np.log(np.array([value for value in values if value is not None and value > 0], dtype=np.float64))

    def column(self, name: str) -> Array | None:
        """A column of ``requests`` as numbers, NaN where it is null; None where the record lacks it."""
        values = self.record["requests"].get(name)
        return None if values is None else np.array(values, dtype=np.float64)

    @cached_property
    def prompts(self) -> tuple[list[str], npt.NDArray[np.intp]]:
        """The prompts' row ids, and for each entry of ``requests`` the position of its prompt among them."""
        positions: dict[str, int] = {}
        entries = [positions.setdefault(row_id, len(positions)) for row_id in self.record["requests"].get("row_id", [])]
        return list(positions), np.array(entries, dtype=np.intp)

    def prompt_means(self, *columns: str) -> dict[str, tuple[float, ...]] | None:
        """For each prompt the mean of some columns over its rounds; entries where one of them is null don't count.

        None where the record lacks a column.
        """
        found = [self.column(name) for name in columns]
        values = [column for column in found if column is not None]
        if len(values) < len(columns) or not values:
            return None
        ids, positions = self.prompts
        known = ~np.isnan(np.sum(values, axis=0))
        counts = np.bincount(positions[known], minlength=len(ids))
        with np.errstate(invalid="ignore", divide="ignore"):
            means = [np.bincount(positions[known], column[known], len(ids)) / counts for column in values]
        rows = zip(ids, counts.tolist(), *(column.tolist() for column in means), strict=True)
        return {row_id: tuple(numbers) for row_id, count, *numbers in rows if count}


def config_text(record: CellRecord) -> str:
    """A configuration's text form, with the request rate where there is one; ``?`` for what isn't known."""
    config = record["config"]
    numbers = (config.get(name) for name in ("batch_size", "num_steps", "topk", "num_draft_tokens"))
    text = ",".join("?" if number is None else str(number) for number in numbers)
    rate = config.get("request_rate")
    return text if rate is None else f"{text} at {rate:g}/s"


def shared_prompts(
    base: Cell, new: Cell, columns: tuple[str, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]] | None:
    """Columns of two cells over the prompts that both have, paired by row id: one array a column for either side.

    None where a record lacks a column, or where they share no prompt.
    """
    before, after = base.prompt_means(*columns), new.prompt_means(*columns)
    if before is None or after is None:
        return None
    shared = [row_id for row_id in before if row_id in after]
    if not shared:
        return None
    sides = [np.array([side[row_id] for row_id in shared]).T for side in (before, after)]
    return tuple(sides[0]), tuple(sides[1])

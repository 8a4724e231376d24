"""A measured cell as an entry of pytest-benchmark's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from specforge.results.record import CellRecord


@dataclass(frozen=True, slots=True)
class CellEntry:
    """One cell with what pytest-benchmark wants to know of it.

    Attributes:
        name, fullname: the test's, with its id.
        group: what the table is grouped by: the benchmark spec.
        param, params: the id's text, and the text of each parameter by its name.
        record: becomes ``extra_info``.
        durations: measured windows, s; empty where nothing was measured.
    """

    name: str
    fullname: str
    group: str
    param: str
    params: dict[str, str]
    record: CellRecord
    durations: tuple[float, ...]

    def metadata(self) -> Any:
        """The entry as pytest-benchmark's own class, as its session keeps it."""
        from pytest_benchmark.stats import Metadata

        fixture = SimpleNamespace(
            name=self.name,
            fullname=self.fullname,
            group=self.group,
            param=self.param,
            params=self.params,
            extra_info=self.record,
            cprofile_stats=None,
            has_error=False,
        )
        options = {"disable_gc": False, "timer": "measured_window", "min_rounds": len(self.durations)}
        metadata = Metadata(fixture, 1, options)
        for duration in self.durations:
            metadata.stats.update(duration)
        return metadata


class RunDocument:
    """Makes the run's JSON: pytest-benchmark's document, with the cells that have no measured round beside it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.machine_info = config.hook.pytest_benchmark_generate_machine_info(config=config)
        self._commit_info = config.hook.pytest_benchmark_generate_commit_info(config=config)

    def of(self, entries: Sequence[CellEntry]) -> dict[str, Any]:
        """The document for the cells so far. Cells without a measured round are under ``unmeasured``."""
        document: dict[str, Any] = self._config.hook.pytest_benchmark_generate_json(
            config=self._config,
            benchmarks=[entry.metadata() for entry in entries if entry.durations],
            include_data=True,
            machine_info=self.machine_info,
            commit_info=self._commit_info,
        )
        document["unmeasured"] = [
            {"name": entry.name, "fullname": entry.fullname, "extra_info": entry.record}
            for entry in entries
            if not entry.durations
        ]
        return document

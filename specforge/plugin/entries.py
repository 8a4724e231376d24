"""A measured cell as an entry of pytest-benchmark's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specforge.errors import RecordError
from specforge.results.load import checked
from specforge.results.record import CellRecord

ASKED = "asked"
"""Under which name a run's JSON says what was asked of it."""


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

    @property
    def test(self) -> str:
        """What measures the cell; see :func:`test_of`."""
        return test_of(self.fullname)

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


def test_of(nodeid: str) -> str:
    """A test's name, file and parameters included, that is the same wherever in the tree pytest was started."""
    file, colons, test = nodeid.partition("::")
    return file.rpartition("/")[2] + colons + test


def entries_of(document: Mapping[str, Any], path: Path) -> list[CellEntry]:
    """The cells of a run's JSON, as :class:`RunDocument` was given them.

    Raises:
        RecordError: the document of ``path`` is damaged.
    """
    entries = []
    try:
        for one in (*document["benchmarks"], *document["unmeasured"]):
            record = checked(one["extra_info"], path, f"the record of {one['name']}")
            param = one["name"].partition("[")[2].removesuffix("]")
            durations = tuple(one["stats"]["data"]) if "stats" in one else ()
            names = (one["name"], one["fullname"], record["benchmark"]["spec"], param, one.get("params") or {})
            entries.append(CellEntry(*names, record, durations))
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{path}: damaged, or not the JSON of a run: {error!r}") from None
    return entries


class RunDocument:
    """Makes the run's JSON: pytest-benchmark's document, with the cells that have no measured round beside it.

    Args:
        asked: what is asked of the run; see :func:`specforge.plugin.resume.asked_of`.
    """

    def __init__(self, config: pytest.Config, asked: Mapping[str, Any]) -> None:
        self._config = config
        self._asked = asked
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
        document[ASKED] = self._asked
        document["unmeasured"] = [
            {"name": entry.name, "fullname": entry.fullname, "extra_info": entry.record}
            for entry in entries
            if not entry.durations
        ]
        return document

"""The records of a run: kept, related to each other, written to its file, and held against a saved run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from specforge.errors import OutputError, SpecForgeError
from specforge.plugin.entries import CellEntry, RunDocument
from specforge.plugin.gate import GatePlan, measured_rounds, read_gate
from specforge.plugin.options import option
from specforge.plugin.resume import Resumed, asked_of, cell_ids
from specforge.plugin.state import settings_of
from specforge.results.cell import Cell
from specforge.results.compare import compare_runs
from specforge.results.load import SavedRun, load_run
from specforge.results.record import CellRecord
from specforge.results.relate import add_lossless, add_speedup
from specforge.results.run_file import RunFiles
from specforge.results.tolerance import check_scopes


@dataclass(frozen=True, slots=True)
class References:
    """The saved runs that this one is held against.

    Attributes:
        gate: what ``--benchmark-compare`` and ``--fail-on`` ask for.
        lossless: the run of ``--lossless-against``; None for the run's own target-only cells.
    """

    gate: GatePlan
    lossless: SavedRun | None

    @classmethod
    def read(cls, config: pytest.Config) -> References:
        """Reads them, before this run is saved among them.

        Raises:
            UsageError, RecordError: a tolerance is wrong, or a run can't be read.
        """
        gate = read_gate(
            lambda name: option(config, name), config.option.benchmark_compare, config.option.benchmark_storage
        )
        if gate.base is not None:
            check_scopes(gate.tolerances, [Cell(record) for record in gate.base.cells])
        lossless = option(config, "lossless_against")
        return cls(gate, load_run(lossless) if lossless else None)


class Ledger:
    """Keeps a run's cells.

    They stand in the matrix's order, whatever order they come in.

    Args:
        resumed: the run that goes on; None for a new one.

    Attributes:
        measured: the tests (:func:`specforge.plugin.entries.test_of`) whose cells were measured in this session.
        gate_lines, report_line: what the end of the run has to say of the gate and of ``--report``.
        unwritten: why the run's file lacks what was measured last; None where it is whole.
    """

    def __init__(
        self,
        config: pytest.Config,
        files: RunFiles,
        references: References,
        resumed: Resumed | None = None,
    ) -> None:
        settings = settings_of(config)
        rounds = measured_rounds(settings.rounds, option(config, "fail_on"))
        self.files = files
        self.resumed = resumed
        self.entries: list[CellEntry] = list(resumed.entries) if resumed is not None else []
        self.measured: set[str] = set()
        self.gate_lines: list[str] = []
        self.report_line: str | None = None
        self.unwritten: str | None = None
        self._config = config
        self._references = references
        self._order = {cell: at for at, cell in enumerate(cell_ids(settings))}
        self._document = RunDocument(config, asked_of(settings, rounds))
        self.warnings = resumed.warnings(settings, rounds, self._document.machine_info) if resumed is not None else []
        self.files.write(self._document.of(self.entries))  # what is asked is known from now on, whatever happens

    def add(self, entry: CellEntry) -> None:
        """Keeps a cell, relates it to the baseline's, and rewrites the run's file."""
        self.measured.add(entry.test)
        self.entries = [one for one in self.entries if one.test != entry.test] + [entry]
        self.entries.sort(key=lambda one: self._order.get(one.param, len(self._order)))
        records = [one.record for one in self.entries]
        add_speedup(records)
        # Rows are read for the new cell and the baselines only, not for all cells after each.
        self._add_lossless([one for one in records if one is entry.record or Cell(one).is_target_only])
        self._write()

    def _write(self) -> None:
        """Rewrites the run's file. A full disk ends no session: there may be room again after the next cell."""
        try:
            self.files.write(self._document.of(self.entries))
            self.unwritten = None
        except OutputError as error:
            self.unwritten = str(error)

    def _add_lossless(self, records: Sequence[CellRecord]) -> None:
        add_lossless(records, self.files.json_path.parent, self._references.lossless)

    def enter(self) -> None:
        """Makes the cells those that pytest-benchmark saves and compares."""
        benchmarks = self._config._benchmarksession.benchmarks  # type: ignore[attr-defined]
        benchmarks[:] = [entry.metadata() for entry in self.entries if entry.durations]

    def saved(self, label: str) -> SavedRun:
        """The run as it would be read from its file."""
        records = [entry.record for entry in self.entries]
        return SavedRun(label, records, self.files.json_path.parent, self._document.machine_info)

    def finish(self) -> bool:
        """Completes the records and holds them against the saved run; whether the session is to fail for it."""
        if not self.entries:
            self.files.json_path.unlink(missing_ok=True)  # a run without a cell is none
            return False
        records = [entry.record for entry in self.entries]
        # A baseline may have come after the cells that it is the baseline of.
        if self.resumed is not None or any(
            record["metrics"]["lossless"] is None and not Cell(record).is_target_only for record in records
        ):
            self._add_lossless(records)
        self._write()
        gate = self._references.gate
        if gate.base is None:
            return self.unwritten is not None
        try:
            comparison = compare_runs(gate.base, [self.saved("this run")], gate.tolerances)[0]
        except SpecForgeError as error:
            self.gate_lines = [f"gate: {error}"]
            return True
        assert comparison.gate is not None
        self.gate_lines = [*comparison.pairing.warnings, *comparison.gate.lines]
        return comparison.gate.failed(fail_on_undecided=gate.fail_on_undecided) or self.unwritten is not None

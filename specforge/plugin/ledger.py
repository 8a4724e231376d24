"""The records of a run: kept, related to each other, written to its file, and held against a saved run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from specforge.errors import SpecForgeError
from specforge.plugin.entries import CellEntry, RunDocument
from specforge.plugin.gate import GatePlan, read_gate
from specforge.plugin.options import option
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

    Args:
        order: where each test's cell stands, by node id; other cells stand in the order in which they come.
    """

    def __init__(
        self,
        config: pytest.Config,
        files: RunFiles,
        references: References,
        order: Mapping[str, int] | None = None,
    ) -> None:
        self.files = files
        self.entries: list[CellEntry] = []
        self.gate_lines: list[str] = []
        self._references = references
        self._order = order or {}
        self._document = RunDocument(config)

    def add(self, entry: CellEntry) -> None:
        """Keeps a cell, relates it to the baseline's, and rewrites the run's file."""
        self.entries.append(entry)
        self.entries.sort(key=lambda one: self._order.get(one.fullname, len(self._order)))
        records = [one.record for one in self.entries]
        add_speedup(records)
        # Rows are read for the new cell and the baselines only, not for all cells after each.
        self._add_lossless([one for one in records if one is entry.record or Cell(one).is_target_only])
        self.files.write(self._document.of(self.entries))

    def _add_lossless(self, records: Sequence[CellRecord]) -> None:
        add_lossless(records, self.files.json_path.parent, self._references.lossless)

    def finish(self) -> bool:
        """Completes the records and holds them against the saved run; whether the session is to fail for it."""
        if not self.entries:
            return False
        records = [entry.record for entry in self.entries]
        # A baseline may have come after the cells that it is the baseline of.
        if any(record["metrics"]["lossless"] is None and not Cell(record).is_target_only for record in records):
            self._add_lossless(records)
        self.files.write(self._document.of(self.entries))
        gate = self._references.gate
        if gate.base is None:
            return False
        this = SavedRun("this run", records, self.files.json_path.parent, self._document.machine_info)
        try:
            comparison = compare_runs(gate.base, [this], gate.tolerances)[0]
        except SpecForgeError as error:
            self.gate_lines = [f"gate: {error}"]
            return True
        assert comparison.gate is not None
        self.gate_lines = [*comparison.pairing.warnings, *comparison.gate.lines]
        return comparison.gate.failed(fail_on_undecided=gate.fail_on_undecided)

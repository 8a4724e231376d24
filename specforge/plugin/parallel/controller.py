"""The hooks of the controller."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from specforge.plugin.options import any_given, option, option_values
from specforge.plugin.parallel.places import (
    THIS_MACHINE,
    WORKER_INPUT,
    Numbers,
    Place,
    check_workers,
    describe_workers,
    machine_of,
    machines_of,
)
from specforge.plugin.parallel.scheduling import ConfigurationScheduling, configuration_of
from specforge.plugin.parallel.transport import take
from specforge.plugin.parallel.worker import MISTAKE
from specforge.plugin.resume import cell_ids
from specforge.plugin.state import ledger_of, resumed_of, settings_of
from specforge.results.run_file import run_stem


class Controller:
    """Gives each worker its place, and keeps the cells that workers measure.

    Args:
        enters_cells: whether pytest-benchmark is to save and compare them.

    Raises:
        pytest.UsageError: the workers can't all measure at once.
    """

    def __init__(self, config: pytest.Config, *, enters_cells: bool) -> None:
        self._config = config
        self.enters_cells = enters_cells
        self._machines = machines_of(config.option.tx)
        self._numbers, self._shares = Numbers(), Numbers()
        # Workers know the folder before it is known whether there is anything to measure, so its name can't be the
        # first that is free.
        self._started = datetime.now().astimezone()
        resumed = resumed_of(config)
        self._kept = resumed.kept if resumed is not None else None
        self._folder = resumed.files.folder if resumed is not None else self._new_folder()
        if any_given(config):
            self._check()

    def _new_folder(self) -> Path:
        stem = run_stem(option(self._config, "name"), self._started)
        return Path(option(self._config, "output_dir")).expanduser() / f"{stem}-{uuid.uuid4().hex[:8]}"

    def _check(self) -> None:
        from specforge.plugin.session import told_by_pytest

        with told_by_pytest():
            check_workers(settings_of(self._config), self._machines, os.environ)

    def pytest_report_header(self) -> str | None:
        """Says how the machine is divided."""
        if not any_given(self._config):
            return None
        return f"specforge: {describe_workers(settings_of(self._config), self._machines, os.environ)}"

    def pytest_configure_node(self, node: Any) -> None:
        """Tells a worker its place, before it starts."""
        worker, machine = node.gateway.id, machine_of(node.gateway.spec)
        place = Place(
            worker=worker,
            number=self._numbers.take("", worker),
            workers=len(self._machines),
            share=self._shares.take(machine, worker),
            shares=self._machines.count(machine),
            output_dir=str(self._folder.parent.absolute()) if machine == THIS_MACHINE else None,
            run=self._folder.name,
            started=self._started.isoformat(),
            kept=self._kept,
            options=option_values(self._config),
        )
        node.workerinput[WORKER_INPUT] = place.plain()

    def pytest_testnodedown(self, node: Any) -> None:
        """A worker's place is free for another; a mistake that it found ends the session."""
        self._numbers.give_back(node.gateway.id)
        self._shares.give_back(node.gateway.id)
        mistake = getattr(node, "workeroutput", {}).get(MISTAKE)
        if mistake is not None:
            raise pytest.UsageError(mistake)

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Begins the run when the first worker has found cells, which is before any of them runs."""
        if ledger_of(self._config) is not None or not any(map(configuration_of, ids)) or not self._are_cells(ids):
            return
        from specforge.plugin.session import keep_for_workers

        self._check()
        keep_for_workers(self._config, self._folder)
        self._schedule_by_configuration()

    def _are_cells(self, ids: Sequence[str]) -> bool:
        """Whether some of these tests have the matrix's configurations.

        Where no option was given, another project's tests may: only a configuration with its benchmark is believed.
        """
        settings = settings_of(self._config)
        if any_given(self._config):
            return not {str(config) for config in settings.configs}.isdisjoint(map(configuration_of, ids))
        cells = cell_ids(settings)
        return any(cell in nodeid for nodeid in filter(configuration_of, ids) for cell in cells)

    def _schedule_by_configuration(self) -> None:
        """Replaces the scheduling, now that it is known to be cells that are scheduled: other tests keep xdist's."""
        session = self._config.pluginmanager.getplugin("dsession")
        scheduling = ConfigurationScheduling(self._config, session.log)
        for node in session.sched.nodes:
            scheduling.add_node(node)
        session.sched = scheduling

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the cell that a report brings, and enters it into pytest-benchmark's session."""
        ledger = ledger_of(self._config)
        entry = take(report, ledger.files) if ledger is not None else None
        if ledger is None or entry is None or entry.test in ledger.measured:
            return
        ledger.add(entry)
        if self.enters_cells:
            ledger.enter()

"""The hooks of a worker."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from specforge.plugin.state import SETTINGS, run_of

if TYPE_CHECKING:
    from specforge.plugin.entries import CellEntry

MISTAKE = "specforge_mistake"
"""Under which name a worker says why nothing can be run."""

_MEASURED = pytest.StashKey["CellEntry"]()


def send(item: pytest.Item, entry: CellEntry) -> None:
    """Has a cell sent to the controller, with the report of the call that measured it."""
    item.stash[_MEASURED] = entry


class Worker:
    """Sends the cells that this worker measures to the controller."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begins the run before xdist's own hook says that this worker is ready, so that a mistake starts nothing."""
        if SETTINGS not in session.config.stash:
            return
        from specforge.plugin.session import collected

        try:
            collected(session)
        except pytest.UsageError as error:
            session.config.workeroutput[MISTAKE] = str(error)  # type: ignore[attr-defined]
            raise
        # Where no option told that there would be cells, pytest-benchmark is about to warn that it is switched off.
        session.config._benchmarksession.xdist_benchmark_found = False  # type: ignore[attr-defined]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Adds a cell to its report, and its rows where the controller doesn't see them."""
        outcome = yield
        if call.when != "call" or _MEASURED not in item.stash:
            return
        from specforge.plugin.parallel.transport import put

        run, entry = run_of(item.config), item.stash[_MEASURED]
        is_elsewhere = run.place is not None and run.place.output_dir is None
        rows = entry.record["rows"] if is_elsewhere else None
        put(outcome.get_result(), entry, run.files.absolute(rows["path"]) if rows is not None else None)

"""Configurations in parallel, on the workers of pytest-xdist.

A worker measures as a session without workers does, but sends each cell to the controller in the test's report. The
controller keeps the cells: it relates them to each other, writes the run's file, and enters them into its own
pytest-benchmark session, which saves and compares them.

``places``      what each worker measures with: its share of the GPUs, or the server it attaches to
``scheduling``  one configuration's cells on one worker
``transport``   a cell in a test's report
``controller``, ``worker``  the hooks of either side
"""

from __future__ import annotations

import pytest

from specforge.plugin.options import any_given


def register(config: pytest.Config) -> None:
    """Adds the hooks of the controller or of a worker; none to a session without workers."""
    is_worker = hasattr(config, "workerinput")
    if not is_worker and not has_workers(config):
        return
    enters_cells = not config.option.benchmark_disable
    if any_given(config):
        # pytest-benchmark switches itself off beside workers, and warns of it unless that was asked for.
        config.option.benchmark_disable, config.option.benchmark_enable = True, False
        config.option.benchmark_only = False
    if is_worker:
        from specforge.plugin.parallel.places import place_of
        from specforge.plugin.parallel.worker import Worker

        place = place_of(config)
        if place is not None:
            vars(config.option).update(place.options)
        config.pluginmanager.register(Worker(), "specforge-worker")
    else:
        from specforge.plugin.parallel.controller import Controller

        config.pluginmanager.register(Controller(config, enters_cells=enters_cells), "specforge-controller")


def has_workers(config: pytest.Config) -> bool:
    """Whether a session is a controller's."""
    distributes = config.getoption("dist", "no") != "no" and bool(config.getoption("tx", []))
    return distributes and not config.option.collectonly

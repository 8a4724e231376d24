"""One configuration's cells on one worker, so that each server is started once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_CONFIGURATION = re.compile(r"(?<=[\[-])\d+(?:,\d+){3}(?=[\]-])")


def configuration_of(nodeid: str) -> str | None:
    """The configuration that a test's id names, as ``[1,3,1,4-gsm8k:5]`` does; None for a test that is no cell."""
    found = _CONFIGURATION.search(nodeid.rpartition("::")[2])
    return found[0] if found else None


class ConfigurationScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole configurations; other tests one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return configuration_of(nodeid) or nodeid

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a worker its next configuration, or tells it that there is none, when it is about to run its last cell.

        A worker runs a cell when it knows the next one, since that decides whether the server stays. xdist's own hands
        out a configuration one cell earlier, which then waits while another worker has nothing to do, and leaves a
        worker with a single cell waiting for ever where that is all it was given in place of a dead one.
        """
        if node.shutting_down or node not in self.registered_collections:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
        if not self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
            node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """Takes a worker out. The cell that it died in is lost; its configuration's others go to another worker.

        xdist's own would hand out the lost cell once more, which may take down worker after worker.
        """
        units = self.assigned_work[node]
        lost = next((nodeid for unit in units.values() for nodeid, done in unit.items() if not done), None)
        for scope in list(units):
            units[scope].update({nodeid: True for nodeid in units[scope] if nodeid == lost})
            if all(units[scope].values()):
                del units[scope]
        super().remove_node(node)
        return lost

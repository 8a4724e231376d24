"""The client watches itself: a benchmark whose client is the bottleneck measures the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_TICK = 0.05  # s between looks at the event loop
_BUSY = 0.8  # of one core: beyond it the client may set the pace
_LAG = 0.05  # s: beyond it answers wait for the client


@dataclass(slots=True)
class SelfWatch:
    """What the client itself cost, summed over the measured windows.

    Attributes:
        cpu_seconds: CPU time of this process inside the windows.
        wall_seconds: length of the windows.
        worst_lag: how late the event loop ever ran what was due, s.
    """

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    worst_lag: float = 0.0
    _late_seconds: float = 0.0

    @contextmanager
    def window(self) -> Iterator[None]:
        """Watches while it is open; used inside the event loop."""
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle | None = None

        def look(due: float) -> None:
            nonlocal handle
            late = loop.time() - due
            self.worst_lag = max(self.worst_lag, late)
            self._late_seconds += max(0.0, late)
            handle = loop.call_later(_TICK, look, loop.time() + _TICK)

        handle = loop.call_later(_TICK, look, loop.time() + _TICK)
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu_seconds += time.process_time() - cpu
            self.wall_seconds += time.perf_counter() - wall
            handle.cancel()

    def as_record(self, requests: int) -> dict[str, float | None]:
        """What the record keeps: ``cpu_seconds, cpu_share, cpu_per_request`` (s) and ``worst_lag`` (s)."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "cpu_share": self.cpu_seconds / self.wall_seconds if self.wall_seconds else None,
            "cpu_per_request": self.cpu_seconds / requests if requests else None,
            "worst_lag": self.worst_lag,
        }

    def warning(self) -> str | None:
        """One line where the client, not the server, may have set the pace; None where it didn't."""
        if not self.wall_seconds:
            return None
        share = self.cpu_seconds / self.wall_seconds
        late = self._late_seconds / self.wall_seconds
        if share > _BUSY or (late > 0.2 and self.worst_lag > _LAG):
            return (
                f"the client may have set the pace: it used {share:.0%} of a core and answered up to "
                f"{1000 * self.worst_lag:.0f} ms late; share the load with --client-processes"
            )
        return None

"""The client watches itself: a benchmark whose client is the bottleneck measures the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_TICK = 0.05  # s between looks at the event loop
_BUSY = 0.8  # of one core: beyond it the client may set the pace
_LAG = 0.05  # s: beyond it answers wait for the client
_SHORTEST = 0.5  # s that must have been watched before anything is said
_OFTEN_LATE = 0.2  # s late in each second


@dataclass(slots=True)
class SelfWatch:
    """What the client itself cost, summed over the measured windows.

    Attributes:
        cpu_seconds: CPU time of the client inside the windows, all its processes together.
        busiest_seconds: the same, of its busiest process.
        wall_seconds: length of the windows.
        worst_lag: how late an event loop ever ran what was due, s.
        late_seconds: how late it was in all, s.
        processes: client processes.
    """

    cpu_seconds: float = 0.0
    busiest_seconds: float = 0.0
    wall_seconds: float = 0.0
    worst_lag: float = 0.0
    late_seconds: float = 0.0
    processes: int = 1

    @contextmanager
    def window(self) -> Iterator[None]:
        """Watches while it is open; used inside the event loop."""
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle | None = None

        def look(due: float) -> None:
            nonlocal handle
            late = loop.time() - due
            self.worst_lag = max(self.worst_lag, late)
            self.late_seconds += max(0.0, late)
            handle = loop.call_later(_TICK, look, loop.time() + _TICK)

        handle = loop.call_later(_TICK, look, loop.time() + _TICK)
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            spent = time.process_time() - cpu
            self.cpu_seconds += spent
            self.busiest_seconds += spent
            self.wall_seconds += time.perf_counter() - wall
            handle.cancel()

    def absorb(self, watches: Sequence[SelfWatch]) -> None:
        """Adds one window that several processes watched, each its own part."""
        self.cpu_seconds += sum(watch.cpu_seconds for watch in watches)
        self.busiest_seconds += max(watch.cpu_seconds for watch in watches)
        self.wall_seconds += max(watch.wall_seconds for watch in watches)
        self.late_seconds += max(watch.late_seconds for watch in watches)
        self.worst_lag = max(self.worst_lag, *(watch.worst_lag for watch in watches))
        self.processes = len(watches)

    def as_record(self, requests: int) -> dict[str, float | None]:
        """What the record keeps: ``processes, cpu_seconds, cpu_share`` (of a core, the busiest process's),
        ``cpu_per_request`` (s) and ``worst_lag`` (s)."""
        return {
            "processes": self.processes,
            "cpu_seconds": self.cpu_seconds,
            "cpu_share": self.busiest_seconds / self.wall_seconds if self.wall_seconds else None,
            "cpu_per_request": self.cpu_seconds / requests if requests else None,
            "worst_lag": self.worst_lag,
        }

    def warning(self) -> str | None:
        """One line where the client, not the server, may have set the pace; None where it didn't."""
        if self.wall_seconds < _SHORTEST:
            return None
        share = self.busiest_seconds / self.wall_seconds
        if share > _BUSY:
            return (
                f"the client may have set the pace: it used {share:.0%} of a core; "
                "share the load with more --client-processes"
            )
        if self.late_seconds / self.wall_seconds > _OFTEN_LATE and self.worst_lag > _LAG:
            return (
                f"the client may have set the pace: it ran up to {1000 * self.worst_lag:.0f} ms late with "
                f"{share:.0%} of a core to itself; another program may need the machine it runs on"
            )
        return None

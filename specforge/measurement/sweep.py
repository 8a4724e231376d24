"""Levels of load, and where more load stops giving more throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specforge.load.schedule import ClosedLoop, OpenLoop, Schedule

GROWTH = 0.05
"""A later level must give more than this share on top, or throughput counts as no longer growing."""

_OPEN_LOOP_WARMUP = 8


@dataclass(frozen=True, slots=True)
class Level:
    """One level of load.

    Attributes:
        concurrency: requests in flight; with a rate, the most in flight, or None for no bound.
        request_rate: requests sent a second; None for a closed loop.
        poisson: whether the gaps of a rate are exponential; else constant.
    """

    concurrency: int | None
    request_rate: float | None = None
    poisson: bool = True

    def schedule(self, seed: int) -> Schedule:
        """When requests are sent."""
        if self.request_rate is None:
            return ClosedLoop(self.concurrency or 1)
        return OpenLoop(self.request_rate, self.poisson, seed, self.concurrency)

    @property
    def warmup_size(self) -> int:
        """Requests of a warm-up batch: as many as will be in flight, where that is known."""
        return self.concurrency or _OPEN_LOOP_WARMUP

    @property
    def arrivals(self) -> str | None:
        """``poisson`` or ``constant``; None for a closed loop."""
        if self.request_rate is None:
            return None
        return "poisson" if self.poisson else "constant"

    def __str__(self) -> str:
        return f"concurrency-{self.concurrency}" if self.request_rate is None else f"rate-{self.request_rate:g}"


def saturation(throughputs: Sequence[float | None]) -> int | None:
    """The first level after which no level gives :data:`GROWTH` more: where throughput stops growing.

    Args:
        throughputs: of each level, in rising order of load; None where it wasn't measured.

    Returns:
        Its place; None where throughput still grew at the last level that was measured, or with fewer than two.
    """
    measured = [(place, value) for place, value in enumerate(throughputs) if value is not None]
    for at, (place, value) in enumerate(measured[:-1]):
        if all(later <= value * (1 + GROWTH) for _, later in measured[at + 1 :]):
            return place
    return None

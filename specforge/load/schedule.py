"""When requests are sent: closed loop (as many in flight as there are slots) or open loop (at a rate)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")
Job = Callable[[T], Awaitable[None]]


class Schedule(Protocol):
    """Runs a job for each item, at its own pace."""

    async def run(self, items: Sequence[T], job: Job[T]) -> None:
        """Returns when every job has ended; the first exception of a job ends the others and is raised."""
        ...


async def _gather_or_cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Waits for all; when one raises, or the waiting itself is cancelled, the others are cancelled and awaited."""
    all_tasks = list(tasks)
    try:
        await asyncio.gather(*all_tasks)
    except BaseException:
        for task in all_tasks:
            task.cancel()
        await asyncio.gather(*all_tasks, return_exceptions=True)
        raise


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``concurrency`` slots; each takes the next item as soon as its own has ended."""

    concurrency: int

    async def run(self, items: Sequence[T], job: Job[T]) -> None:
        """See :class:`Schedule`."""
        queue = iter(items)

        async def slot() -> None:
            for item in queue:
                await job(item)

        count = min(self.concurrency, len(items))
        await _gather_or_cancel([asyncio.ensure_future(slot()) for _ in range(count)])


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Items are sent at a rate, whether or not earlier ones have ended: what independent users do.

    Attributes:
        rate: requests a second, on average.
        poisson: exponential gaps (Poisson arrivals); else constant ones.
        seed: of the gaps.
        max_in_flight: requests beyond it wait, and count as late; None for no bound.
    """

    rate: float
    poisson: bool = True
    seed: int = 0
    max_in_flight: int | None = None

    def arrivals(self, count: int) -> list[float]:
        """Seconds after the start at which each of ``count`` items is due; the first at once."""
        draw = random.Random(self.seed)
        due = [0.0]
        for _ in range(count - 1):
            due.append(due[-1] + (draw.expovariate(self.rate) if self.poisson else 1 / self.rate))
        return due[:count]

    async def run(self, items: Sequence[T], job: Job[T]) -> None:
        """See :class:`Schedule`."""
        loop = asyncio.get_running_loop()
        gate = asyncio.Semaphore(self.max_in_flight) if self.max_in_flight else None
        tasks: list[asyncio.Task[None]] = []

        async def one(item: T) -> None:
            if gate is None:
                await job(item)
            else:
                async with gate:
                    await job(item)

        async def send_all() -> None:
            started = loop.time()
            for item, due in zip(items, self.arrivals(len(items)), strict=True):
                delay = started + due - loop.time()
                if delay > 0:
                    await asyncio.sleep(delay)
                tasks.append(asyncio.ensure_future(one(item)))

        try:
            await send_all()
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        await _gather_or_cancel(tasks)

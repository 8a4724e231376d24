"""When requests are sent: closed loop (as many in flight as there are slots) or open loop (at a rate)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
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


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``concurrency`` slots; each takes the next item as soon as its own has ended.

    Attributes:
        concurrency: the slots.
        next_place: gives the place of the next item; None for one after the other. Processes that share the items
            give each other's places here.
    """

    concurrency: int
    next_place: Callable[[], int] | None = None

    async def run(self, items: Sequence[T], job: Job[T]) -> None:
        """See :class:`Schedule`."""
        next_place = self.next_place or itertools.count().__next__

        async def slot() -> None:
            while (place := next_place()) < len(items):
                await job(items[place])

        count = min(self.concurrency, len(items))
        slots = [asyncio.ensure_future(slot()) for _ in range(count)]
        try:
            await asyncio.gather(*slots)
        except BaseException:
            await _cancel(slots)
            raise


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Items are sent at a rate, whether or not earlier ones have ended: what independent users do.

    Attributes:
        rate: requests a second, on average.
        poisson: exponential gaps (Poisson arrivals); else constant ones.
        seed: of the gaps.
        max_in_flight: requests beyond it wait, and count as late; None for no bound.
        part, parts: this one sends every ``parts``-th item from the ``part``-th on, as one of several processes.
    """

    rate: float
    poisson: bool = True
    seed: int = 0
    max_in_flight: int | None = None
    part: int = 0
    parts: int = 1

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
        gate = asyncio.Semaphore(self.max_in_flight) if self.max_in_flight else contextlib.nullcontext()
        running: set[asyncio.Task[None]] = set()  # those that have ended are let go: there may be a hundred thousand
        over: asyncio.Future[None] = loop.create_future()
        all_sent = False

        async def one(item: T) -> None:
            async with gate:
                await job(item)

        def ended(task: asyncio.Task[None]) -> None:
            running.discard(task)
            error = None if task.cancelled() else task.exception()
            if over.done():
                return
            if error is not None:
                over.set_exception(error)
            elif all_sent and not running:
                over.set_result(None)

        started = loop.time()
        try:
            for place, due in enumerate(self.arrivals(len(items))):
                if place % self.parts != self.part:
                    continue
                delay = started + due - loop.time()
                if delay > 0:
                    await asyncio.wait({over}, timeout=delay)
                if over.done():
                    break
                task = asyncio.ensure_future(one(items[place]))
                running.add(task)
                task.add_done_callback(ended)
            all_sent = True
            if running or over.done():
                await over
        finally:
            over.cancel()
            await _cancel(running)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    all_tasks = list(tasks)
    for task in all_tasks:
        task.cancel()
    await asyncio.gather(*all_tasks, return_exceptions=True)

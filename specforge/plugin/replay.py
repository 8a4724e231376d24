"""Handing measured rounds to pytest-benchmark.

Rounds are measured by the load generator, from the first request's send to the last one's end. pytest-benchmark times
a call by reading a timer before and after it; here its timer is a clock that stands still but for the call, in which it
moves on by one measured round. So its statistics hold the measured windows to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest


class ReplayClock:
    """A clock that shows 0 before each round and the round's length after it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._durations: list[float] = []

    def load(self, durations: Sequence[float]) -> None:
        """Takes the rounds to be replayed."""
        self._durations = list(durations)

    def rewind(self) -> None:
        """Called before each round."""
        self._now = 0.0

    def play(self) -> None:
        """One round passes."""
        self._now = self._durations.pop(0)

    def read(self) -> float:
        """The time, s."""
        return self._now


CLOCK = pytest.StashKey[ReplayClock]()


def add_clocks(items: Sequence[pytest.Item]) -> None:
    """Gives each item that measures a cell a clock of its own as pytest-benchmark's timer."""
    for item in items:
        if "measure_cell" in getattr(item, "fixturenames", ()):
            clock = ReplayClock()
            item.stash[CLOCK] = clock
            item.add_marker(pytest.mark.benchmark(timer=_timer(clock)))
            # A cell that can't be measured fails with its reason, beside which this would be noise.
            item.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"))


def _timer(clock: ReplayClock) -> Callable[[], float]:
    def measured_window() -> float:  # its name is what pytest-benchmark's JSON calls the timer
        return clock.read()

    return measured_window


def replay(benchmark: Any, clock: ReplayClock, durations: Sequence[float]) -> None:
    """Plays the rounds to pytest-benchmark's fixture."""
    clock.load(durations)
    benchmark.pedantic(clock.play, setup=clock.rewind, rounds=len(durations), iterations=1)

"""The client's watch on itself."""

from __future__ import annotations

import asyncio
import time

from specforge.load.selfwatch import SelfWatch


def watched(work_seconds: float, times: int) -> SelfWatch:
    """A watch over an event loop that is kept from its work several times."""
    watch = SelfWatch()

    async def main() -> None:
        with watch.window():
            for _ in range(times):
                until = time.perf_counter() + work_seconds
                while time.perf_counter() < until:
                    pass
                await asyncio.sleep(0)

    asyncio.run(main())
    return watch


def test_a_blocked_event_loop_is_noticed_and_warned_of() -> None:
    watch = watched(0.2, times=3)
    assert watch.worst_lag >= 0.1
    assert watch.wall_seconds >= 0.6
    assert "the client may have set the pace" in str(watch.warning())


def test_an_idle_client_warns_of_nothing() -> None:
    watch = SelfWatch(cpu_seconds=0.1, busiest_seconds=0.1, wall_seconds=10.0, worst_lag=0.01)
    assert watch.warning() is None


def test_a_client_that_fills_a_core_is_told_to_share_the_load() -> None:
    watch = SelfWatch(cpu_seconds=9.0, busiest_seconds=9.0, wall_seconds=10.0)
    assert watch.warning() == (
        "the client may have set the pace: it used 90% of a core; share the load with more --client-processes"
    )


def test_a_window_of_several_processes_counts_their_work_together_and_the_busiest_alone() -> None:
    whole = SelfWatch()
    parts = [
        SelfWatch(cpu_seconds=cpu, wall_seconds=wall, worst_lag=lag) for cpu, wall, lag in ((3, 4, 0.1), (1, 5, 0.3))
    ]
    whole.absorb(parts)
    record = whole.as_record(requests=100)
    assert record == {
        "processes": 2,
        "cpu_seconds": 4,
        "cpu_share": 3 / 5,
        "cpu_per_request": 0.04,
        "worst_lag": 0.3,
    }


def test_nothing_measured_says_nothing() -> None:
    assert SelfWatch().warning() is None
    assert SelfWatch().as_record(0)["cpu_share"] is None

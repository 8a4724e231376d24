"""When requests are sent: closed and open loop, alone and shared."""

from __future__ import annotations

import asyncio
import itertools
import statistics

import pytest

from specforge.load.schedule import ClosedLoop, OpenLoop, Schedule


class Jobs:
    """Jobs that end when they are let go, and know how many of them run."""

    def __init__(self, expected: int) -> None:
        self.done: list[int] = []
        self.running = self.most = 0
        self.let_go = asyncio.Event()
        self._expected = expected
        self.all_run = asyncio.Event()

    async def __call__(self, item: int) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self._expected:
            self.all_run.set()
        await self.let_go.wait()
        self.running -= 1
        self.done.append(item)


def run_all(schedule: Schedule, count: int, expected: int) -> Jobs:
    """Runs ``count`` jobs, which are let go when ``expected`` of them run at once."""

    async def main() -> Jobs:
        jobs = Jobs(expected)
        task = asyncio.ensure_future(schedule.run(list(range(count)), jobs))
        await asyncio.wait_for(jobs.all_run.wait(), 20)
        jobs.let_go.set()
        await task
        return jobs

    return asyncio.run(main())


def test_a_closed_loop_runs_as_many_jobs_as_it_has_slots_and_each_item_once() -> None:
    jobs = run_all(ClosedLoop(3), 10, expected=3)
    assert jobs.most == 3
    assert sorted(jobs.done) == list(range(10))


def test_a_closed_loop_has_no_more_slots_than_items() -> None:
    assert run_all(ClosedLoop(8), 2, expected=2).most == 2


def test_closed_loops_that_share_a_queue_run_each_item_once() -> None:
    async def main() -> list[int]:
        places = itertools.count()
        done: list[int] = []

        async def job(item: int) -> None:
            await asyncio.sleep(0)
            done.append(item)

        loops = [ClosedLoop(slots, places.__next__) for slots in (1, 3)]
        await asyncio.gather(*(loop.run(list(range(20)), job) for loop in loops))
        return done

    assert sorted(asyncio.run(main())) == list(range(20))


@pytest.mark.parametrize("schedule", [ClosedLoop(4), OpenLoop(10_000.0)], ids=["closed", "open"])
def test_the_first_exception_of_a_job_ends_the_others_and_is_raised(schedule: Schedule) -> None:
    async def main() -> list[str]:
        fates: list[str] = []

        async def job(item: int) -> None:
            if item == 3:
                raise ValueError("job 3")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                fates.append("cancelled")
                raise

        with pytest.raises(ValueError, match="job 3"):
            await schedule.run(list(range(4)), job)
        return fates

    assert asyncio.run(main()) == ["cancelled"] * 3


def test_an_open_loop_sends_whether_or_not_earlier_requests_have_ended() -> None:
    jobs = run_all(OpenLoop(2000.0, poisson=False), 12, expected=12)
    assert sorted(jobs.done) == list(range(12))


def test_an_open_loop_with_a_bound_keeps_it() -> None:
    assert run_all(OpenLoop(10_000.0, max_in_flight=4), 12, expected=4).most == 4


def test_an_open_loop_keeps_to_its_arrivals() -> None:
    async def main() -> tuple[list[float], list[float]]:
        loop = asyncio.get_running_loop()
        schedule = OpenLoop(100.0, seed=3)
        started, sent = loop.time(), []

        async def job(item: int) -> None:  # noqa: ARG001
            sent.append(loop.time() - started)

        await schedule.run(list(range(20)), job)
        return schedule.arrivals(20), sent

    due, sent = asyncio.run(main())
    assert all(at >= planned for planned, at in zip(due, sent, strict=True))


def test_constant_arrivals_are_evenly_spaced() -> None:
    assert OpenLoop(4.0, poisson=False).arrivals(4) == [0.0, 0.25, 0.5, 0.75]


def test_poisson_arrivals_have_exponential_gaps_of_the_right_mean() -> None:
    arrivals = OpenLoop(10.0, seed=1).arrivals(20_000)
    gaps = [after - before for before, after in itertools.pairwise(arrivals)]
    assert statistics.mean(gaps) == pytest.approx(0.1, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.1, rel=0.03)  # an exponential's deviation is its mean


def test_the_same_seed_gives_the_same_arrivals_and_another_seed_others() -> None:
    assert OpenLoop(3.0, seed=5).arrivals(50) == OpenLoop(3.0, seed=5).arrivals(50)
    assert OpenLoop(3.0, seed=5).arrivals(50) != OpenLoop(3.0, seed=6).arrivals(50)


def test_the_parts_of_an_open_loop_send_each_item_once() -> None:
    async def main() -> list[int]:
        done: list[int] = []

        async def job(item: int) -> None:
            done.append(item)

        parts = [OpenLoop(5000.0, part=part, parts=3) for part in range(3)]
        await asyncio.gather(*(part.run(list(range(11)), job) for part in parts))
        return done

    assert sorted(asyncio.run(main())) == list(range(11))


@pytest.mark.parametrize("schedule", [ClosedLoop(4), OpenLoop(1.0)], ids=["closed", "open"])
def test_nothing_to_send_ends_at_once(schedule: Schedule) -> None:
    async def job(item: int) -> None:
        raise AssertionError(f"there is no item {item}")

    assert asyncio.run(schedule.run([], job)) is None

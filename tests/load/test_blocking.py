"""Interrupts of what runs in the event loop."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from specforge.load.blocking import run_blocking, sigterm_interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_the_main_task_and_no_task_that_happens_to_run_meets_it(number: signal.Signals):
    happened = []

    async def bystander() -> None:
        signal.raise_signal(number)
        happened.append("the bystander went on")

    async def main() -> None:
        beside = asyncio.ensure_future(bystander())
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await beside
            happened.append("the main task was cancelled and said farewell")
            raise

    with sigterm_interrupts():
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            run_blocking(main)
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert happened == ["the bystander went on", "the main task was cancelled and said farewell"]


def test_an_interrupt_wakes_a_loop_that_waits_and_a_second_one_ends_a_farewell_that_hangs():
    farewell = threading.Event()

    def press_twice() -> None:
        assert asleep.wait(30)
        signal.pthread_kill(main_thread, signal.SIGINT)
        assert farewell.wait(30)
        signal.pthread_kill(main_thread, signal.SIGINT)

    async def main() -> None:
        try:
            asleep.set()
            await asyncio.Event().wait()
        finally:
            farewell.set()
            await asyncio.Event().wait()

    asleep, main_thread = threading.Event(), threading.main_thread().ident
    assert main_thread is not None
    presser = threading.Thread(target=press_twice)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        run_blocking(main)
    presser.join()


def test_an_interrupt_at_the_very_end_is_not_lost():
    async def main() -> str:
        signal.raise_signal(signal.SIGINT)
        return "a result that nobody sees"

    with pytest.raises(KeyboardInterrupt):
        run_blocking(main)


def test_a_signal_that_is_ignored_stays_ignored():
    async def main() -> str:
        signal.raise_signal(signal.SIGINT)
        return "done"

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run_blocking(main) == "done"
    finally:
        signal.signal(signal.SIGINT, before)


def test_results_and_errors_come_through_from_any_thread():
    async def fails() -> None:
        raise LookupError("nothing there")

    async def answers() -> int:
        return 42

    answers_seen: list[int] = []
    thread = threading.Thread(target=lambda: answers_seen.append(run_blocking(answers)))
    thread.start()
    thread.join()
    assert answers_seen == [42]
    with pytest.raises(LookupError, match="nothing there"):
        run_blocking(fails)

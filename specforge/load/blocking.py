"""From the synchronous world of tests and commands into the event loop and back."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_FAREWELL = 10.0  # s that cancelled requests get to be aborted on the server


def run_blocking(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine to its end. An interrupt cancels it, waits until its requests are aborted, and is raised.

    It is raised here, not in whichever of the loop's tasks happens to run: that task would keep it, and whoever waits
    for the task, or collects it as garbage, would meet it once more. A second interrupt is raised at once.

    Raises:
        KeyboardInterrupt: the process was interrupted, whatever became of the coroutine.
    """
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(main())
        interrupted = asyncio.Event()
        supervisor = loop.create_task(_until_interrupted(task, interrupted))
        with _interrupts_set(interrupted, loop):
            try:
                loop.run_until_complete(supervisor)
            except BaseException:
                supervisor.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(supervisor)
                raise
        if not interrupted.is_set():
            return task.result()
        if task.done() and not task.cancelled():
            task.exception()  # looked at, so that it isn't reported as forgotten
        raise KeyboardInterrupt
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _until_interrupted(task: asyncio.Task[Any], interrupted: asyncio.Event) -> None:
    """Waits for the task; where it is given up before its end, cancels it and gives its requests time to be aborted."""
    interruption = asyncio.ensure_future(interrupted.wait())
    try:
        await asyncio.wait({task, interruption}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        interruption.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_FAREWELL)


@contextlib.contextmanager
def _interrupts_set(interrupted: asyncio.Event, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The first of the signals that would raise sets the event; each one after it goes to the handler it has now."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    raising = {number: handler for number, handler in before.items() if callable(handler)}

    def told(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raising[signal.Signals(number)](number, frame)
        interrupted.set()
        loop.call_soon_threadsafe(lambda: None)  # a loop that waits for sockets would not look otherwise

    if threading.current_thread() is not threading.main_thread():  # which alone is told of signals
        yield
        return
    try:
        for number in raising:
            signal.signal(number, told)
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Makes SIGTERM raise KeyboardInterrupt, as Ctrl-C does, so that what was measured so far is kept."""

    def interrupt(number: int, frame: Any) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: whoever runs this minds its own signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

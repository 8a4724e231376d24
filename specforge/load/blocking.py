"""From the synchronous world of tests and commands into the event loop and back."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_FAREWELL = 10.0  # s that cancelled requests get to be aborted on the server


def run_blocking(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine to its end. An interrupt cancels it, waits until its requests are aborted, and is raised."""
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(main())
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait({task}, timeout=_FAREWELL))
            raise
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


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

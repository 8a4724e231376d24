"""Watching the server while requests run: a request may take an hour, a dead server should not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import aiohttp

from specforge.client.endpoint import Endpoint
from specforge.errors import ServerError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Watch:
    """How a server is watched.

    Attributes:
        endpoint: its ``/ready`` is asked, which costs it nothing.
        check_alive: raises :class:`ServerError` when the server's process has ended; does nothing where
            there is no process to look at.
        interval: seconds between looks.
        hang_after: seconds of silence after which the server counts as hung.
        refusals: consecutive refused connections after which it counts as gone.
    """

    endpoint: Endpoint
    check_alive: Callable[[], None] = lambda: None
    interval: float = 1.0
    hang_after: float = 60.0
    refusals: int = 3

    async def during(self, work: Awaitable[T]) -> T:
        """Awaits ``work``; a server that dies or hangs meanwhile cancels it.

        Raises:
            ServerError: the server died or hung.
        """
        task = asyncio.ensure_future(work)
        watcher = asyncio.ensure_future(self._look())
        try:
            await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                watcher.result()  # raises what it found
            return await task
        finally:
            for pending in (task, watcher):
                pending.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await pending

    async def _look(self) -> None:
        refused = 0
        silent_since: float | None = None
        loop = asyncio.get_running_loop()
        patience = min(10.0, self.hang_after)
        timeout = aiohttp.ClientTimeout(total=patience)
        async with aiohttp.ClientSession(timeout=timeout, headers=self.endpoint.headers()) as session:
            while True:
                await asyncio.sleep(self.interval)
                self.check_alive()
                try:
                    async with session.get(self.endpoint.url("/ready")) as answer:
                        await answer.read()
                    refused, silent_since = 0, None
                except asyncio.TimeoutError:
                    silent_since = silent_since if silent_since is not None else loop.time() - patience
                    if loop.time() - silent_since >= self.hang_after:
                        raise ServerError(
                            f"the server at {self.endpoint.base_url} hangs: "
                            f"/ready has not answered for {self.hang_after:g} s"
                        ) from None
                except aiohttp.ClientError as error:
                    refused += 1
                    if refused >= self.refusals:
                        raise ServerError(f"the server at {self.endpoint.base_url} is gone: {error}") from None

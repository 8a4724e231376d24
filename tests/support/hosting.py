"""An aiohttp application on a thread of its own, for a test that drives it from outside."""

from __future__ import annotations

import abc
import asyncio
import socket
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from typing_extensions import Self

_START_SECONDS = 30.0
_BACKLOG = 4096


def listener(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises OSError where the port is taken."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    return bound


async def serve(app: web.Application, bound: socket.socket) -> web.AppRunner:
    """Serves an application on a bound socket, without signal handlers or an access log.

    A handler is cancelled when its client leaves; open connections are cut when the runner is cleaned up.
    """
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.0, handle_signals=False)
    await runner.setup()
    await web.SockSite(runner, bound, backlog=_BACKLOG).start()
    return runner


class HostedApp(abc.ABC):
    """A context manager that serves ``application()`` on a loopback port from a thread."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    @abc.abstractmethod
    async def application(self) -> web.Application:
        """Makes the application, on the loop that serves it."""

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def end(self) -> None:
        """Closes the port and every connection; callable from the loop alone."""
        self._ending.set()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise RuntimeError(f"{type(self).__name__} did not start")
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        bound = listener("127.0.0.1", self._port)
        self._port = bound.getsockname()[1]
        runner = await serve(await self.application(), bound)
        self._started.set()
        try:
            await self._ending.wait()
        finally:
            await runner.cleanup()

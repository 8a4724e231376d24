"""Opens the port, serves until a signal, and closes in order."""

import asyncio
import logging
import signal
from collections.abc import Sequence

from aiohttp import web

from specforge.engine.build import Engine
from specforge.engine.server.app import create_app
from specforge.errors import UsageError

_DRAIN_SECONDS = 5.0
_WATCH_SECONDS = 0.2

logger = logging.getLogger(__name__)


async def serve(engine: Engine, argv: Sequence[str]) -> None:
    """Serve until SIGINT or SIGTERM, or until the engine's thread fails: its error is raised then.

    Raises UsageError where the port can't be opened.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stop.set)
    # A handler is cancelled when its client hangs up: that is what frees the client's slot.
    runner = web.AppRunner(
        create_app(engine, argv), access_log=None, handler_cancellation=True, shutdown_timeout=_DRAIN_SECONDS
    )
    await runner.setup()
    host, port = engine.arguments.host, engine.arguments.port
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise UsageError(f"--port: can't listen on {host}:{port} ({error.strerror})") from error
    engine.scheduler.start()
    logger.info("The server is fired up and ready to roll!")
    stopped = asyncio.create_task(stop.wait())
    while not stop.is_set() and engine.scheduler.failure is None:
        await asyncio.wait([stopped], timeout=_WATCH_SECONDS)
    stopped.cancel()
    engine.scheduler.close()
    await runner.cleanup()
    if engine.scheduler.failure is not None:
        raise engine.scheduler.failure

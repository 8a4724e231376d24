"""A proxy that hands everything on as it is and keeps every raw response, for a count that owes nothing to the harness.

::

    with RecordingProxy(server.base_url, tmp_path / "wire.jsonl") as proxy:
        ...  # attach the harness to proxy.base_url
    exchanges = read_exchanges(tmp_path / "wire.jsonl")
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.hosting import HostedApp

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}
_LARGEST_BODY = 256 << 20


@dataclass
class Exchange:
    """One request and the raw body of its response. ``status`` is None where the server gave none; times are Unix."""

    method: str
    path: str
    request: str
    status: int | None = None
    response: str = ""
    complete: bool = False
    started: float = 0.0
    ended: float = 0.0

    def body(self) -> Any:
        """The response as JSON; raises ValueError where it is none."""
        return json.loads(self.response)

    def events(self) -> list[Any]:
        """The data of a streamed response's events, without the closing one."""
        lines = (line[len("data: ") :] for line in self.response.splitlines() if line.startswith("data: "))
        return [json.loads(line) for line in lines if line != "[DONE]"]


class RecordingProxy(HostedApp):
    """A proxy on a free loopback port, on a thread; a context manager.

    An exchange is on disk before the client has the end of its response.
    """

    def __init__(self, target: str, path: Path) -> None:
        super().__init__()
        self._target = target.rstrip("/")
        self._path = path

    async def application(self) -> web.Application:
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        self._file = self._path.open("a", encoding="utf-8")
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        app.on_cleanup.append(self._close)
        return app

    async def _close(self, _app: web.Application) -> None:
        await self._session.close()
        self._file.close()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        exchange = Exchange(request.method, request.path, (await request.read()).decode("utf-8", "replace"))
        exchange.started = time.time()
        response: web.StreamResponse | None = None
        received = bytearray()
        try:
            async with self._session.request(
                request.method,
                self._target + request.raw_path,
                data=await request.read(),
                headers=_end_to_end(request.headers),
                allow_redirects=False,
            ) as answer:
                exchange.status = answer.status
                response = web.StreamResponse(status=answer.status, reason=answer.reason)
                response.headers.extend(_end_to_end(answer.headers))
                # What has a length is complete for the client with its last byte, so that is sent after it is kept.
                is_stream = answer.content_length is None
                if is_stream:
                    await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    received += chunk
                    if is_stream:
                        await response.write(chunk)
                exchange.complete = True
        except aiohttp.ClientError:
            pass  # kept as incomplete, and cut for the client too
        finally:
            exchange.ended = time.time()
            exchange.response = received.decode("utf-8", "replace")
            self._keep(exchange)
        if response is None:
            _cut(request)
            return web.Response()
        if not is_stream:
            await response.prepare(request)
            await response.write(bytes(received))
        if not exchange.complete:
            _cut(request)
        return response

    def _keep(self, exchange: Exchange) -> None:
        self._file.write(json.dumps(asdict(exchange)) + "\n")
        self._file.flush()


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()


def _end_to_end(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in {*_HOP_BY_HOP, "host"}}


def read_exchanges(path: Path) -> list[Exchange]:
    """Every exchange that a proxy has kept, in the order in which they ended."""
    with path.open(encoding="utf-8") as lines:
        return [Exchange(**json.loads(line)) for line in lines]


def generations(exchanges: list[Exchange]) -> Iterator[Exchange]:
    """The exchanges that asked for tokens and got an answer."""
    for exchange in exchanges:
        if exchange.path.endswith(("/v1/chat/completions", "/generate")) and exchange.status == 200:
            yield exchange

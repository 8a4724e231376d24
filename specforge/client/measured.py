"""The client of the measured requests: one asyncio session, little work a request."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import orjson

from specforge.client.endpoint import Endpoint
from specforge.client.reply import MalformedReply, Reply, parse_chat, parse_generate
from specforge.client.stream import read_chat_stream, read_generate_stream
from specforge.client.wire import Route, Wire, with_request_id

# Below uvicorn's 5 s, so that a connection the server is about to close is not picked up again.
_KEEPALIVE = 4.0
_TOO_LONG_WORDS = ("context length", "longer than the model", "too long")


class RequestFailure(Exception):
    """One attempt failed.

    Attributes:
        kind: ``connection``, ``timeout``, ``status``, ``malformed``, ``too_long`` or ``aborted``.
        retryable: whether another attempt may succeed.
    """

    def __init__(self, kind: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


class MeasuredClient:
    """Sends requests over kept-alive connections; opened and used inside one event loop.

    Args:
        endpoint: the server.
        wire: how it is asked.
        timeout: limit for one request, s; the request is aborted on the server when it passes.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire, timeout: float) -> None:
        self.wire = wire
        self.timeout = timeout
        self._endpoint = endpoint
        self._url = endpoint.url(wire.route.value)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", **endpoint.headers()},
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=30),
            read_bufsize=2**20,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def send(self, body: bytes, request_id: str) -> Reply:
        """Sends one prepared body and reads the whole answer.

        Raises:
            RequestFailure: no usable answer came; the request was aborted on the server if it may still run there.
        """
        sent_at = time.perf_counter()
        try:
            async with self._session.post(self._url, data=with_request_id(body, request_id)) as response:
                if response.status != 200:
                    raise _refused(response.status, await response.read())
                if self.wire.stream:
                    read = read_generate_stream if self.wire.route is Route.GENERATE else read_chat_stream
                    reply = await read(response.content)
                else:
                    reply = self._parse(await response.read())
        except aiohttp.ConnectionTimeoutError as error:
            raise RequestFailure("connection", f"no connection: {error}", retryable=True) from error
        except asyncio.TimeoutError:
            await self._abort(request_id)
            raise RequestFailure(
                "timeout", f"no answer within {self.timeout:g} s (--request-timeout)", retryable=False
            ) from None
        except asyncio.CancelledError:
            # The caller gives up (Ctrl-C, a dead server): what the server still computes would disturb what follows.
            await asyncio.shield(self._abort(request_id))
            raise
        except aiohttp.ClientError as error:
            raise RequestFailure("connection", f"connection lost: {error}", retryable=True) from error
        except (MalformedReply, orjson.JSONDecodeError) as error:
            raise RequestFailure("malformed", f"malformed answer: {error}", retryable=True) from error
        if reply.finish_reason == "abort":
            raise RequestFailure("aborted", "the server aborted the request", retryable=True)
        reply.sent_at = sent_at
        reply.ended_at = time.perf_counter()
        return reply

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Posts JSON beside the measured requests (tokenizing, aborting): status, and the decoded body or None."""
        try:
            async with self._session.post(self._endpoint.url(path), data=orjson.dumps(body)) as response:
                content = await response.read()
                try:
                    return response.status, orjson.loads(content)
                except orjson.JSONDecodeError:
                    return response.status, None
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            raise RequestFailure("connection", f"{path}: {error}", retryable=True) from error

    def _parse(self, content: bytes) -> Reply:
        data = orjson.loads(content)
        return parse_generate(data) if self.wire.route is Route.GENERATE else parse_chat(data)

    async def _abort(self, request_id: str) -> None:
        try:
            async with self._session.post(
                self._endpoint.url("/abort_request"),
                data=orjson.dumps({"rid": request_id}),
                timeout=aiohttp.ClientTimeout(total=2),
            ):
                pass
        except (aiohttp.ClientError, asyncio.TimeoutError):
            pass  # a server that can't be reached has nothing left to abort


def _refused(status: int, content: bytes) -> RequestFailure:
    excerpt = " ".join(content.decode("utf-8", "replace").split())[:300]
    if status == 400 and any(words in excerpt for words in _TOO_LONG_WORDS):
        return RequestFailure("too_long", f"the prompt does not fit: {excerpt}", retryable=False)
    retryable = status >= 500 or status in (408, 425, 429)
    return RequestFailure("status", f"status {status}: {excerpt}", retryable=retryable)

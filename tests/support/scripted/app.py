"""The HTTP side of a scripted server: routes, pace and faults."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.support.scripted import about, bodies
from tests.support.scripted.answering import Answers
from tests.support.scripted.asked import Asked, Refused
from tests.support.scripted.log import Exchange, Log
from tests.support.scripted.script import Fault, Script

_OPEN_PATHS = ("/ready", "/health", "/health_generate", "/_script")
_JSON = {"Content-Type": "application/json"}
_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}
_LARGEST_BODY = 64 << 20

Handler = Callable[[Exchange], Coroutine[Any, Any, "web.StreamResponse | None"]]
"""Answers one request; None cuts its connection."""


class ScriptedApp:
    """The server's behaviour. ``die`` ends whatever hosts it, with an exit status."""

    def __init__(
        self,
        script: Script,
        *,
        die: Callable[[int], None],
        log_path: Path | None = None,
        arguments: Mapping[str, Any] | None = None,
        command: Sequence[str] = (),
    ) -> None:
        self.script = script
        self.log = Log(log_path, keep=script.keep_log)
        self.ready = True
        self._die = die
        self._server_info = about.server_info(script, arguments or {}, command)
        self._flush_refusals_left = script.wire.flush_refusals
        self._struck: collections.Counter[int] = collections.Counter()
        self._answers = Answers(script)
        self._aborts: dict[str, asyncio.Event] = {}

    def application(self) -> web.Application:
        """The aiohttp application that hosts this."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        routes: dict[str, Handler] = {
            "/ready": self._health,
            "/health": self._health,
            "/health_generate": self._health,
            "/server_info": self._about(lambda: self._server_info),
            "/get_server_info": self._about(lambda: self._server_info),
            "/model_info": self._about(lambda: about.model_info(self.script)),
            "/get_model_info": self._about(lambda: about.model_info(self.script)),
            "/v1/models": self._about(lambda: about.models(self.script)),
            "/flush_cache": self._flush,
            "/v1/tokenize": self._tokenize,
            "/tokenize": self._tokenize,
            "/v1/chat/completions": self._generation,
            "/generate": self._generation,
            "/abort_request": self._abort,
        }
        for path, handle in routes.items():
            if path not in self.script.wire.missing:
                app.router.add_route("*", path, self._logged(handle))
        app.router.add_get("/_script/log", self._show_log)
        app.on_cleanup.append(self._close_log)
        return app

    # Around every request

    def _logged(self, handle: Handler) -> Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(request, await request.read())
            status = None
            try:
                # Not with "or": older versions of aiohttp take a response for an empty mapping, which is false.
                refusal = self._unauthorized(request)
                response = await handle(exchange) if refusal is None else refusal
                if isinstance(response, web.Response):
                    exchange.sent = response.body if isinstance(response.body, bytes) else b""
                if response is None:
                    _cut(request)
                    return web.Response()
                status = response.status
                return response
            finally:
                self.log.end(exchange, status)

        return handler

    def _unauthorized(self, request: web.Request) -> web.Response | None:
        key = self.script.wire.api_key
        if key is None or request.path.startswith(_OPEN_PATHS):
            return None
        if request.headers.get("Authorization") == f"Bearer {key}":
            return None
        return _json({"error": "Unauthorized"}, status=401)

    # Control calls

    async def _health(self, _exchange: Exchange) -> web.Response:
        return web.Response(status=200 if self.ready else 503)

    def _about(self, what: Callable[[], Any]) -> Callable[[Exchange], Coroutine[Any, Any, web.Response]]:
        async def handle(_exchange: Exchange) -> web.Response:
            return _json(what())

        return handle

    async def _flush(self, exchange: Exchange) -> web.Response:
        if self._flush_refusals_left > 0:
            self._flush_refusals_left -= 1
            exchange.fault = "flush refused"
        if self.log.in_flight or exchange.fault:
            return web.Response(status=400, text="Flush cache failed.\n")
        self._answers.forget_prompts()
        return web.Response(text="Cache flushed.\n")

    async def _tokenize(self, exchange: Exchange) -> web.Response:
        try:
            exchange.parsed = orjson.loads(exchange.body)
            ids = self._answers.tokens(exchange.parsed)
        except (ValueError, KeyError) as error:
            return _refusal(exchange.path, f"1 validation error: {error!r}")
        except Refused as refused:
            return _refusal(exchange.path, str(refused))
        return _json({"tokens": ids, "count": len(ids), "max_model_len": self.script.wire.context_length})

    async def _abort(self, exchange: Exchange) -> web.Response:
        exchange.parsed = orjson.loads(exchange.body)
        if event := self._aborts.get(exchange.parsed.get("rid")):
            event.set()
        return web.Response()

    async def _close_log(self, _app: web.Application) -> None:
        self.log.close()

    async def _show_log(self, _request: web.Request) -> web.Response:
        return _json(
            {
                "requests": self.log.entries,
                "generations": self.log.generations,
                "max_in_flight": self.log.max_in_flight,
            }
        )

    # Generation

    async def _generation(self, exchange: Exchange) -> web.StreamResponse | None:
        self.log.begin_generation(exchange)
        try:
            exchange.parsed = orjson.loads(exchange.body)
            asked = self._answers.read(exchange.path, exchange.parsed)
        except ValueError as error:
            return _refusal(exchange.path, f"1 validation error: {error}")
        except Refused as refused:
            return _refusal(exchange.path, str(refused))
        fault = self._fault(exchange, asked)
        if fault is not None and fault.what != "slow":
            return await self._strike(fault, exchange, asked)
        slowed = fault.seconds if fault else 0.0
        if asked.stream:
            return await self._stream(exchange, asked, slowed)
        wait = slowed + self._answers.seconds(asked)
        aborted = wait > 0 and await self._aborted(asked, wait)
        body = self._answers.whole(exchange.path, exchange.body, asked, aborted=aborted)
        return web.Response(body=body, headers=_JSON)

    async def _stream(self, exchange: Exchange, asked: Asked, slowed: float) -> web.StreamResponse:
        pace = self.script.pace
        chunks = self._answers.events(exchange.path, exchange.body, asked)
        response = web.StreamResponse(headers=_EVENTS)
        await response.prepare(exchange.request)
        await asyncio.sleep(slowed + pace.per_request)
        if not pace.per_step:
            chunks = [b"".join(chunks)]
        for at, chunk in enumerate(chunks):
            if 0 < at < len(chunks) - 1:
                await asyncio.sleep(pace.per_step)
            exchange.sent += chunk
            if at == len(chunks) - 1:
                self.log.end(exchange, response.status)
            await response.write(chunk)
        return response

    async def _aborted(self, asked: Asked, wait: float) -> bool:
        """Waits as the pace says; True where the client aborted the request meanwhile."""
        rid = asked.body.get("rid")
        if not rid:
            await asyncio.sleep(wait)
            return False
        event = self._aborts[rid] = asyncio.Event()
        try:
            await asyncio.wait_for(event.wait(), wait)
        except asyncio.TimeoutError:
            return False
        finally:
            del self._aborts[rid]
        return True

    # Faults

    def _fault(self, exchange: Exchange, asked: Asked) -> Fault | None:
        assert exchange.ordinal is not None
        for at, fault in enumerate(self.script.faults):
            if self._struck[at] < fault.times and fault.meets(exchange.ordinal, asked.text):
                self._struck[at] += 1
                exchange.fault = fault.what
                return fault
        return None

    async def _strike(self, fault: Fault, exchange: Exchange, asked: Asked) -> web.StreamResponse | None:
        if fault.what == "status":
            headers = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            return _json({"error": {"message": f"scripted {fault.status}"}}, status=fault.status, headers=headers)
        if fault.what == "malformed":
            return web.Response(body=b'{"choices": [{"index": 0, "mess', headers=_JSON)
        if fault.what == "hang":
            await asyncio.Event().wait()
        if fault.what == "exit":
            self.log.end(exchange, None)
            self._die(fault.status)
        if fault.what == "drop":
            await self._send_half(exchange, asked)
        return None

    async def _send_half(self, exchange: Exchange, asked: Asked) -> None:
        if asked.stream:
            body = b"".join(self._answers.events(exchange.path, exchange.body, asked))
            response = web.StreamResponse(headers=_EVENTS)
        else:
            body = self._answers.whole(exchange.path, exchange.body, asked)
            response = web.StreamResponse(headers={**_JSON, "Content-Length": str(len(body))})
        await response.prepare(exchange.request)
        exchange.sent = body[: len(body) // 2]
        await response.write(exchange.sent)


def _json(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=bodies.encoded(body), status=status, headers={**_JSON, **(headers or {})})


def _refusal(path: str, message: str) -> web.Response:
    """A 400 in the form that the endpoint gives it."""
    if path == "/generate":
        return _json({"error": {"message": message}}, status=400)
    body = {"object": "error", "message": message, "type": "BadRequest", "param": None, "code": 400}
    return _json(body, status=400)


def _cut(request: web.Request) -> None:
    """Closes the connection under the client."""
    if request.transport is not None:
        request.transport.close()

"""The HTTP side of a scripted server: routes, pace, faults, and the log of everything that was asked."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from aiohttp import web

from tests.support.scripted import about, bodies
from tests.support.scripted import asked as asking
from tests.support.scripted.asked import Asked, Refused
from tests.support.scripted.replies import Reply, reply_to, token_ids
from tests.support.scripted.script import Fault, Script

_OPEN_PATHS = ("/ready", "/health", "/health_generate", "/_script")
_JSON = {"Content-Type": "application/json"}
_MOST_CACHED_BODIES = 4096
_LARGEST_BODY = 64 << 20


class Log:
    """Every request and its raw response, in memory and, where a path is given, as JSON lines."""

    def __init__(self, path: Path | None, keep: bool) -> None:
        self.entries: list[dict[str, Any]] = []
        self.in_flight = self.max_in_flight = self.generations = 0
        self._keep = keep
        self._file: BinaryIO | None = path.open("ab") if path else None

    def add(self, entry: Mapping[str, Any]) -> None:
        """Keeps one entry; it is in the file before the client can act on the answer it describes."""
        if self._keep:
            self.entries.append(dict(entry))
        if self._file:
            self._file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()

    def close(self) -> None:
        if self._file:
            self._file.close()


class Exchange:
    """One request being answered: what its log entry will say."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.request, self.body = request, body
        self.started = time.time()
        self.ordinal: int | None = None
        self.fault: str | None = None
        self.sent = b""
        self.parsed: Any = None
        self.is_over = False

    def entry(self, status: int | None) -> dict[str, Any]:
        return {
            "ordinal": self.ordinal,
            "method": self.request.method,
            "path": self.request.path,
            "query": self.request.query_string,
            "started": self.started,
            "ended": time.time(),
            "status": status,
            "fault": self.fault,
            "request": self.parsed if self.parsed is not None else self.body.decode("utf-8", "replace"),
            "response": self.sent.decode("utf-8", "replace"),
        }


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
        self.log = Log(log_path, script.keep_log)
        self.ready = True
        self._die = die
        self._server_info = about.server_info(script, arguments or {}, command)
        self._flush_refusals_left = script.wire.flush_refusals
        self._struck: collections.Counter[int] = collections.Counter()
        self._seen: set[str] = set()
        self._decode: dict[int, str] = {}
        self._aborts: dict[str, asyncio.Event] = {}
        self._alike: dict[tuple[int, bool, int], Reply] = {}
        self._bodies: dict[tuple[str, bytes], list[bytes]] = {}

    def application(self) -> web.Application:
        """The aiohttp application that hosts this."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        routes: dict[str, Callable[[Exchange], Coroutine[Any, Any, web.StreamResponse | None]]] = {
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

    def _logged(
        self, handle: Callable[[Exchange], Coroutine[Any, Any, web.StreamResponse | None]]
    ) -> Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(request, await request.read())
            status = None
            try:
                response = self._unauthorized(request) or await handle(exchange)
                if isinstance(response, web.Response):
                    exchange.sent = response.body if isinstance(response.body, bytes) else b""
                if response is None:
                    _cut(request)
                    return web.Response()
                status = response.status
                return response
            finally:
                self._end(exchange, status)

        return handler

    def _end(self, exchange: Exchange, status: int | None) -> None:
        """Counts a request as answered, once, before its client can know that it is."""
        if exchange.is_over:
            return
        exchange.is_over = True
        if exchange.ordinal is not None:
            self.log.in_flight -= 1
        if self.script.keep_log:
            self.log.add(exchange.entry(status))

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
        self._seen.clear()
        return web.Response(text="Cache flushed.\n")

    async def _tokenize(self, exchange: Exchange) -> web.Response:
        try:
            body = exchange.parsed = orjson.loads(exchange.body)
            if "messages" in body:
                prompt = asking.render(body["messages"], images=self.script.wire.images)
            else:
                prompt = body["prompt"]
        except (ValueError, KeyError) as error:
            return _refusal("/v1/tokenize", f"1 validation error: {error!r}")
        except Refused as refused:
            return _refusal("/v1/tokenize", str(refused))
        ids = token_ids(prompt)
        self._decode.update(asking.vocabulary(prompt, ids))
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
        log = self.log
        log.generations += 1
        exchange.ordinal = log.generations
        log.in_flight += 1
        log.max_in_flight = max(log.max_in_flight, log.in_flight)
        return await self._answer(exchange)

    async def _answer(self, exchange: Exchange) -> web.StreamResponse | None:
        path = exchange.request.path
        try:
            exchange.parsed = orjson.loads(exchange.body)
            asked = self._read(path, exchange.parsed)
        except ValueError as error:
            return _refusal(path, f"1 validation error: {error}")
        except Refused as refused:
            return _refusal(path, str(refused))
        fault = self._fault(exchange, asked)
        if fault is not None and fault.what != "slow":
            return await self._strike(fault, exchange, asked)
        slowed = fault.seconds if fault else 0.0
        if asked.stream:
            return await self._stream(exchange, asked, slowed)
        replies = self._replies(asked)
        wait = slowed + max(bodies.latencies(reply, self.script.pace)[1] for _, _, reply in replies)
        aborted = wait > 0 and await self._aborted(asked, wait)
        body = self._body(path, exchange.body, asked, lambda: [self._whole(path, asked, replies, aborted)])
        return web.Response(body=body[0], headers=_JSON)

    def _read(self, path: str, body: Any) -> Asked:
        if path == "/generate":
            return asking.generate(body, self.script.wire, self._decode)
        return asking.chat(body, self.script.wire)

    def _replies(self, asked: Asked) -> list[tuple[str, int, Reply]]:
        """For each answer asked for: the prompt, the length of the prompt in tokens, the answer."""
        return [
            (prompt, len(ids), self._reply(asked, prompt, sample))
            for prompt, ids in asked.prompts
            for sample in range(asked.samples)
        ]

    def _reply(self, asked: Asked, prompt: str, sample: int) -> Reply:
        key = (asked.max_tokens, asked.ignore_end, sample)
        if key in self._alike:
            return self._alike[key]
        reply = reply_to(
            prompt,
            max_tokens=asked.max_tokens,
            replies=self.script.replies,
            speculation=self.script.speculation,
            ignore_end=asked.ignore_end,
            sample=sample,
        )
        if self.script.replies.alike:
            self._alike[key] = reply
        return reply

    def _body(self, path: str, request: bytes, asked: Asked, make: Callable[[], list[bytes]]) -> list[bytes]:
        """The body, made once for equal requests where nothing but the request decides it."""
        if self.script.wire.prefix_cache or "rid" in asked.body:
            return make()
        key = (path, request)
        if key not in self._bodies:
            if len(self._bodies) >= _MOST_CACHED_BODIES:
                return make()
            self._bodies[key] = make()
        return self._bodies[key]

    def _info(self, asked: Asked, prompt: str, prompt_tokens: int, reply: Reply, at: int, aborted: bool) -> Any:
        cached = 0
        if self.script.wire.prefix_cache:
            cached = prompt_tokens - 1 if prompt in self._seen else 0
            self._seen.add(prompt)
        return bodies.meta_info(
            reply,
            self.script.wire,
            self.script.pace,
            rid=asked.body.get("rid") or f"scripted-{at}",
            prompt_tokens=prompt_tokens,
            cached=cached,
            aborted=aborted,
        )

    def _whole(self, path: str, asked: Asked, replies: list[tuple[str, int, Reply]], aborted: bool) -> bytes:
        told = [
            (reply, self._info(asked, prompt, tokens, reply, at, aborted))
            for at, (prompt, tokens, reply) in enumerate(replies)
        ]
        if path == "/generate":
            answers = [bodies.generation(reply, info) for reply, info in told]
            return bodies.encoded(answers if asked.batched else answers[0])
        wire, (_, ids) = self.script.wire, asked.prompts[0]
        choices = []
        for at, (reply, info) in enumerate(told):
            choice = bodies.chat_choice(at, reply, info)
            if asked.body.get("return_token_ids") and wire.token_ids:
                choice.update(prompt_token_ids=list(ids), response_token_ids=list(reply.output_ids))
            if asked.body.get("return_meta_info") and wire.meta_info:
                choice["meta_info"] = info
            choices.append(choice)
        tokens = sum(len(reply.output_ids) for reply, _ in told)
        model = asked.body.get("model") or self.script.model
        return bodies.encoded(bodies.chat_completion(told[0][1]["id"], model, choices, len(ids), tokens))

    async def _stream(self, exchange: Exchange, asked: Asked, slowed: float) -> web.StreamResponse:
        pace = self.script.pace
        path = exchange.request.path
        chunks = self._body(path, exchange.body, asked, lambda: list(self._events(path, asked)))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(exchange.request)
        await asyncio.sleep(slowed + pace.per_request)
        if not pace.per_step:
            chunks = [b"".join(chunks)]
        for at, chunk in enumerate(chunks):
            if 0 < at < len(chunks) - 1:
                await asyncio.sleep(pace.per_step)
            if self.script.keep_log:
                exchange.sent += chunk
            if at == len(chunks) - 1:
                self._end(exchange, response.status)
            await response.write(chunk)
        return response

    def _events(self, path: str, asked: Asked) -> Iterable[bytes]:
        prompt, tokens, reply = self._replies(asked)[0]
        info = self._info(asked, prompt, tokens, reply, 0, False)
        if path == "/generate":
            return bodies.generation_events(reply, info)
        options = asked.body.get("stream_options") or {}
        return bodies.chat_events(
            reply,
            info,
            model=asked.body.get("model") or self.script.model,
            with_usage=bool(options.get("include_usage")),
            with_details=bool(asked.body.get("return_spec_tokens_details")) and self.script.wire.meta_info,
        )

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
            self._end(exchange, None)
            self._die(fault.status)
        if fault.what == "drop":
            whole = self._whole(exchange.request.path, asked, self._replies(asked), False)
            response = web.StreamResponse(headers={**_JSON, "Content-Length": str(len(whole))})
            await response.prepare(exchange.request)
            exchange.sent = whole[: len(whole) // 2]
            await response.write(exchange.sent)
        return None


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

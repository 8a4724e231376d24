"""What the server says about itself, tokenizing, and the control endpoints."""

import asyncio
import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aiohttp import web

import specforge
from specforge.engine.arguments import redacted
from specforge.engine.sampling import SamplingParams
from specforge.engine.server.bodies import BadBody, json_response, read_object, typed
from specforge.engine.server.chat import chat_prompt
from specforge.engine.server.generation import Generator
from specforge.engine.server.merging import results

_FLUSH_RETRY = 0.02

_HEALTH_TIMEOUT = 20.0


class About:
    """The endpoints that generate nothing for a client."""

    def __init__(self, generator: Generator, argv: Sequence[str]) -> None:
        """`argv`: the command line, which `/server_info` repeats."""
        self._generator, self._engine = generator, generator.engine
        self._argv = argv
        self._created = int(time.time())

    async def root(self, _: web.Request) -> web.Response:
        """A sign of life."""
        return json_response("SGLang is running")

    async def ready(self, _: web.Request) -> web.Response:
        """200: the models are loaded before the port opens."""
        return web.Response(status=200 if self._engine.scheduler.failure is None else 503)

    async def health(self, _: web.Request) -> web.Response:
        """Run one token through the engine, unless it is busy: then its next step is the proof."""
        load = self._engine.scheduler.load
        if self._engine.scheduler.failure is not None:
            return web.Response(status=503)
        if load.running or load.waiting:
            return web.Response()
        params = SamplingParams(max_new_tokens=1, temperature=0.0)
        generation = self._generator.prepare([0], params, streams=False)()
        try:
            await asyncio.wait_for(results([generation]), _HEALTH_TIMEOUT)
        except asyncio.TimeoutError:
            return web.Response(status=503)
        return web.Response()

    async def server_info(self, _: web.Request) -> web.Response:
        """The resolved arguments and the state, under SGLang's names."""
        engine, load = self._engine, self._engine.scheduler.load
        arguments = {**engine.arguments.as_json(), "context_length": engine.context}
        fixed = {
            "device": "cpu",
            "dtype": "float32",
            "page_size": 1,
            "tp_size": 1,
            "dp_size": 1,
            "pp_size": 1,
            "nnodes": 1,
        }
        totals = load.totals
        state = {
            **arguments,
            **fixed,
            "effective_max_running_requests_per_dp": engine.arguments.max_running_requests,
            "last_gen_throughput": totals.decode_tokens / totals.decode_seconds if totals.decode_seconds else 0.0,
            "memory_usage": {"token_capacity": engine.prefix_budget, "process_peak": _peak_gigabytes()},
            "num_running_reqs": load.running,
            "num_waiting_reqs": load.waiting,
            "prefix_cache_tokens": load.prefix_tokens,
        }
        if totals.verify_steps:
            state["avg_spec_accept_length"] = totals.spec_tokens / totals.verify_steps
        return json_response(
            {
                **arguments,
                **fixed,
                "launch_command": redacted(self._argv, engine.arguments.api_key),
                "status": "ready",
                "version": f"{specforge.__version__}+embedded",
                "engine": "specforge.engine",
                "max_total_num_tokens": engine.prefix_budget,
                "max_req_input_len": engine.context - 1 - engine.reserved,
                "internal_states": [state],
            }
        )

    async def model_info(self, _: web.Request) -> web.Response:
        """What the model is."""
        engine = self._engine
        return json_response(
            {
                "model_path": engine.arguments.model_path,
                "served_model_name": engine.arguments.served_model_name,
                "tokenizer_path": engine.arguments.tokenizer_path,
                "is_generation": True,
                "preferred_sampling_params": None,
                "weight_version": "default",
                "load_format": "auto",
                "reasoning_parser": None,
                "tool_call_parser": None,
                "has_image_understanding": False,
                "has_audio_understanding": False,
                "model_type": "llama",
                "architectures": [engine.architecture],
            }
        )

    async def models(self, _: web.Request) -> web.Response:
        """OpenAI's list of models: the one served."""
        name = self._engine.arguments.served_model_name
        card = {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "specforge",
            "root": self._engine.arguments.model_path,
            "parent": None,
            "max_model_len": self._engine.context,
        }
        return json_response({"object": "list", "data": [card]})

    async def tokenize(self, request: web.Request) -> web.Response:
        """Token ids of `prompt`, a string or a list of them, or of `messages` through the chat template."""
        body = await read_object(request)
        tokenizer = self._engine.tokenizer
        prompt = typed(body, "prompt", (str, list))
        if (prompt is None) == (body.get("messages") is None):
            raise BadBody("Exactly one of 'prompt' or 'messages' must be provided.")
        tokens: Any
        count: Any
        if prompt is None:
            tokens = chat_prompt(body, self._generator)
            count = len(tokens)
        else:
            special = typed(body, "add_special_tokens", bool, True)
            texts = [prompt] if isinstance(prompt, str) else prompt
            if not all(isinstance(text, str) for text in texts):
                raise BadBody("prompt: Input should be a valid string or a list of strings")
            tokens = [tokenizer.encode(text, special=special) for text in texts]
            count = [len(one) for one in tokens]
            if isinstance(prompt, str):
                tokens, count = tokens[0], count[0]
        longest = tokenizer.longest or self._engine.context
        return json_response({"tokens": tokens, "count": count, "max_model_len": longest})

    async def detokenize(self, request: web.Request) -> web.Response:
        """The text of token ids."""
        body = await read_object(request)
        tokens = typed(body, "tokens", list)
        skip = typed(body, "skip_special_tokens", bool, True)
        limit = self._engine.vocabulary
        if tokens is None or not all(isinstance(token, int) and 0 <= token < limit for token in tokens):
            raise BadBody(f"tokens: Input should be a list of token ids below {limit}")
        return json_response({"text": self._engine.tokenizer.decode(tokens, skip_special=skip)})

    async def flush_cache(self, request: web.Request) -> web.Response:
        """Empty the caches: 200, or 400 while anything runs; `?timeout=S` waits so long for the end of it."""
        try:
            patience = float(request.query.get("timeout", "0"))
        except ValueError as error:
            raise BadBody(f"timeout: Input should be a valid number, got {request.query['timeout']!r}") from error
        deadline = time.monotonic() + patience
        while not await self._flush():
            if time.monotonic() >= deadline:
                return web.Response(status=400, text="Flush cache failed.\n")
            await asyncio.sleep(_FLUSH_RETRY)
        return web.Response(text="Cache flushed.\n")

    async def abort_request(self, request: web.Request) -> web.Response:
        """End one request (`rid`) or all (`abort_all`); an unknown one is no error."""
        body = await read_object(request, required=False)
        rid = typed(body, "rid", str, "")
        if typed(body, "abort_all", bool, False):
            self._engine.scheduler.abort(lambda _: True)
        elif rid:
            # SGLang matches by the beginning.
            self._engine.scheduler.abort(lambda running: running.rid.startswith(rid))
        return web.Response()

    async def _flush(self) -> bool:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()

        def settle(emptied: bool) -> None:
            if not done.done():
                done.set_result(emptied)

        self._engine.scheduler.flush(partial(_on_loop, loop, settle))
        return await done


def _on_loop(loop: asyncio.AbstractEventLoop, settle: Callable[[bool], None], emptied: bool) -> None:
    loop.call_soon_threadsafe(settle, emptied)


def _peak_gigabytes() -> float:
    """The most memory this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes on Linux, bytes on macOS.
    return peak / (1 << 30 if sys.platform == "darwin" else 1 << 20)

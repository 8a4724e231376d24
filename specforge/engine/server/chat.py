"""/v1/chat/completions and /v1/completions."""

import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from aiohttp import web

from specforge.engine.sampling import SamplingParams
from specforge.engine.server.bodies import (
    DONE,
    BadBody,
    BadCombination,
    event,
    event_stream,
    json_response,
    read_object,
    typed,
)
from specforge.engine.server.generation import Generation, Generator, Update
from specforge.engine.server.merging import merged, results
from specforge.engine.server.meta import meta_info, spec_tokens_details, usage, weights_metadata
from specforge.errors import RequestError

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")

_PARAMETERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "min_tokens": "min_new_tokens",
    "stop": "stop",
    "stop_token_ids": "stop_token_ids",
    "ignore_eos": "ignore_eos",
    "skip_special_tokens": "skip_special_tokens",
    "no_stop_trim": "no_stop_trim",
    "seed": "sampling_seed",
    "logit_bias": "logit_bias",
    "n": "n",
}
"""Fields of an OpenAI body -> SGLang's sampling parameters."""

_UNSUPPORTED = ("tools", "logprobs", "top_logprobs", "echo", "suffix", "regex", "ebnf", "return_hidden_states")


async def chat_completions(request: web.Request, generator: Generator) -> web.StreamResponse:
    """A chat through the model's own template."""
    body = await read_object(request)
    streams = typed(body, "stream", bool, False)
    for name, where in (("return_meta_info", ""), ("return_token_ids", " on /v1/chat/completions")):
        if streams and typed(body, name, bool, False):
            raise BadCombination(
                f"{name} is not supported with streaming{where}. Please set stream=false when using {name}=true."
            )
    prompt = chat_prompt(body, generator)
    return await _Completion(body, generator, chat=True).respond(request, prompt, streams=streams)


async def completions(request: web.Request, generator: Generator) -> web.StreamResponse:
    """A prompt as it is: a string or token ids."""
    body = await read_object(request)
    prompt = typed(body, "prompt", (str, list))
    if prompt is None:
        raise BadBody("prompt: Field required")
    if isinstance(prompt, list) and not all(isinstance(token, int) for token in prompt):
        raise RequestError("prompt must be a string or a list of token ids: lists of prompts are not supported.")
    tokens = generator.engine.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
    streams = typed(body, "stream", bool, False)
    return await _Completion(body, generator, chat=False).respond(request, tokens, streams=streams)


def chat_prompt(body: Mapping[str, Any], generator: Generator) -> list[int]:
    """Token ids of a body's `messages`. Raises RequestError for messages that are none, or that hold more than text."""
    messages = typed(body, "messages", list)
    if messages is None:
        raise BadBody("messages: Field required")
    if not messages:
        raise RequestError("Messages cannot be empty.")
    variables = typed(body, "chat_template_kwargs", dict, {})
    return generator.engine.tokenizer.render([_message(message) for message in messages], variables)


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise BadBody(f"messages: Input should be a dictionary, got {message!r}")
    if message.get("role") not in _ROLES:
        raise BadBody(f"messages: 'role' must be one of {', '.join(_ROLES)}, got {message.get('role')!r}")
    content = message.get("content")
    if isinstance(content, list):
        content = " ".join(_text_part(part) for part in content)
    if content is not None and not isinstance(content, str):
        raise BadBody(f"messages: 'content' must be a string or a list of parts, got {content!r}")
    return {**message, "content": content or ""}


def _text_part(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind != "text":
        raise RequestError(f"Model only supports text input; received unsupported content type {kind!r}.")
    text = part.get("text")
    if not isinstance(text, str):
        raise BadBody(f"messages: 'text' must be a string, got {text!r}")
    return text


class _Completion:
    """One call of an OpenAI endpoint."""

    def __init__(self, body: Mapping[str, Any], generator: Generator, *, chat: bool) -> None:
        self._body, self._generator, self._chat = body, generator, chat
        self._created = int(time.time())
        self._model = typed(body, "model", str, "default")
        self._options: dict[str, Any] = typed(body, "stream_options", dict, {})
        self._details = typed(body, "return_spec_tokens_details", bool, False)
        for name in _UNSUPPORTED:
            if body.get(name):
                raise RequestError(f"{name} is not supported by the embedded engine.")
        if (typed(body, "response_format", dict, {}).get("type") or "text") != "text":
            raise RequestError("response_format is not supported by the embedded engine.")

    async def respond(self, request: web.Request, prompt: list[int], *, streams: bool) -> web.StreamResponse:
        params = self._params()
        rid = typed(self._body, "rid", str)
        starts = []
        for copy in range(params.n):
            own = params.for_copy(copy)
            starts.append(self._generator.prepare(prompt, own, rid if copy == 0 else None, streams=streams))
        if streams:
            return await self._stream(request, starts)
        generations = [start() for start in starts]
        return json_response(self._whole(generations, await results(generations)))

    def _params(self) -> SamplingParams:
        """What the body says, else the model's generation_config, else OpenAI's defaults."""
        engine = self._generator.engine
        defaults = engine.chat_defaults if engine.arguments.sampling_defaults == "model" else {}
        given: dict[str, Any] = dict(defaults) if self._chat or defaults else {}
        for theirs, ours in _PARAMETERS.items():
            if self._body.get(theirs) is not None:
                given[ours] = self._body[theirs]
        limit = self._body.get("max_completion_tokens")
        if limit is None:
            limit = self._body.get("max_tokens")
        given["max_new_tokens"] = limit if limit is not None or self._chat else 16
        return SamplingParams.parse(given, engine.vocabulary)

    def _whole(self, generations: list[Generation], updates: list[Update]) -> dict[str, Any]:
        choices = [self._choice(index, *pair) for index, pair in enumerate(zip(generations, updates, strict=True))]
        produced = [len(update.tokens) for update in updates]
        answer = {
            **self._head(generations[0], ""),
            "choices": choices,
            "usage": self._usage(generations, sum(produced)),
            "metadata": weights_metadata(produced[0]),
        }
        if self._details:
            nodes = self._generator.engine.nodes
            details = [spec_tokens_details(generation.request, nodes) for generation in generations]
            answer["sglext"] = {"spec_tokens_details": details[0] if len(details) == 1 else details}
        return answer

    def _choice(self, index: int, generation: Generation, update: Update) -> dict[str, Any]:
        request = generation.request
        choice: dict[str, Any] = {"index": index}
        if self._chat:
            choice["message"] = {"role": "assistant", "content": update.text, "reasoning_content": None}
        else:
            choice["text"] = update.text
        choice |= {"logprobs": None, **_finish(generation)}
        if self._body.get("return_token_ids"):
            choice["prompt_token_ids"] = request.tokens[: request.prompt_length]
            choice["response_token_ids"] = update.tokens
        if self._body.get("return_meta_info"):
            choice["meta_info"] = meta_info(request, self._generator.engine, len(update.tokens), finished=True)
        return choice

    async def _stream(self, request: web.Request, starts: list[Callable[[], Generation]]) -> web.StreamResponse:
        response = await event_stream(request)
        generations = [start() for start in starts]
        sent = [""] * len(generations)
        opened = [False] * len(generations)
        produced = [0] * len(generations)
        async with aclosing(merged(generations)) as updates:  # type: ignore[type-var]
            async for index, update in updates:
                generation = generations[index]
                if self._chat and not opened[index]:
                    opened[index] = True
                    await response.write(event(self._chunk(generation, index, {"role": "assistant", "content": ""})))
                produced[index] = len(update.tokens)
                # A stop string may take back text that was sent before it was complete.
                delta = update.text[len(sent[index]) :] if update.text.startswith(sent[index]) else ""
                sent[index] = update.text
                if self._chat:
                    if delta:
                        await response.write(event(self._chunk(generation, index, {"content": delta})))
                    if update.finished:
                        await response.write(event(self._chunk(generation, index, {}, finished=True)))
                elif delta or update.finished:
                    await response.write(event(self._chunk(generation, index, delta, finished=update.finished)))
        for closing in self._closing(generations, sum(produced)):
            await response.write(event(closing))
        await response.write(DONE)
        await response.write_eof()
        return response

    def _chunk(
        self, generation: Generation, index: int, delta: dict[str, Any] | str, *, finished: bool = False
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index}
        if isinstance(delta, str):
            choice["text"] = delta
        else:
            choice["delta"] = {"reasoning_content": None, **delta}
        ending = _finish(generation) if finished else {"finish_reason": None, "matched_stop": None}
        chunk = {**self._head(generation, ".chunk"), "choices": [{**choice, "logprobs": None, **ending}]}
        return chunk if self._chat else {**chunk, "usage": None}

    def _closing(self, generations: list[Generation], produced: int) -> list[dict[str, Any]]:
        """The chunks without choices that end a stream."""
        head, chunks = self._head(generations[0], ".chunk"), []
        if self._details:
            nodes = self._generator.engine.nodes
            details = [spec_tokens_details(generation.request, nodes) for generation in generations]
            shown = details[0] if len(details) == 1 else details
            chunks.append({**head, "choices": [], "usage": None, "sglext": {"spec_tokens_details": shown}})
        if self._options.get("include_usage"):
            chunks.append({**head, "choices": [], "usage": self._usage(generations, produced)})
        return chunks

    def _head(self, generation: Generation, suffix: str) -> dict[str, Any]:
        kind = f"chat.completion{suffix}" if self._chat else "text_completion"
        return {"id": generation.request.rid, "object": kind, "created": self._created, "model": self._model}

    def _usage(self, generations: list[Generation], produced: int) -> dict[str, Any]:
        report = self._generator.engine.arguments.enable_cache_report
        first = generations[0].request
        return usage(first.prompt_length, produced, first.cached if report else None)


def _finish(generation: Generation) -> dict[str, Any]:
    finish = generation.request.finish
    assert finish is not None
    return {"finish_reason": finish.kind, "matched_stop": finish.detail.get("matched")}

"""/generate: SGLang's native endpoint."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from aiohttp import web

from specforge.engine.sampling import SamplingParams
from specforge.engine.server.bodies import DONE, BadBody, event, event_stream, json_response, read_object, typed
from specforge.engine.server.generation import Generation, Generator, Update
from specforge.engine.server.merging import merged, results
from specforge.engine.server.meta import meta_info
from specforge.errors import RequestError

_UNSUPPORTED = (
    "input_embeds",
    "image_data",
    "video_data",
    "audio_data",
    "return_logprob",
    "return_hidden_states",
    "lora_path",
    "session_params",
)


async def generate(request: web.Request, generator: Generator) -> web.StreamResponse:
    """One prompt or a list, `text` or `input_ids`, whole or streamed."""
    body = await read_object(request)
    for name in _UNSUPPORTED:
        asked = body.get(name)
        if any(asked) if isinstance(asked, list) else asked:
            raise RequestError(f"{name} is not supported by the embedded engine.")
    streams = typed(body, "stream", bool, False)
    prompts, single = _prompts(body, generator)
    wanted = _spread(body, "sampling_params", dict, len(prompts))
    rids = _spread(body, "rid", str, len(prompts))
    starts = []
    for prompt, given, rid in zip(prompts, wanted, rids, strict=True):
        params = SamplingParams.parse(given or {}, generator.engine.vocabulary)
        single = single and params.n == 1
        for copy in range(params.n):
            own_rid = rid if params.n == 1 else None
            starts.append(generator.prepare(prompt, params.for_copy(copy), own_rid, streams=streams))
    if streams:
        return await _stream(request, generator, starts, single)
    generations = [start() for start in starts]
    answers = [
        _answer(generation, update, generator)
        for generation, update in zip(generations, await results(generations), strict=True)
    ]
    return json_response(answers[0] if single else answers)


async def _stream(
    request: web.Request, generator: Generator, starts: list[Callable[[], Generation]], single: bool
) -> web.StreamResponse:
    response = await event_stream(request)
    generations = [start() for start in starts]
    async with aclosing(merged(generations)) as updates:  # type: ignore[type-var]
        async for index, update in updates:
            answer = _answer(generations[index], update, generator)
            await response.write(event(answer if single else {**answer, "index": index}))
    await response.write(DONE)
    await response.write_eof()
    return response


def _answer(generation: Generation, update: Update, generator: Generator) -> dict[str, Any]:
    meta = meta_info(generation.request, generator.engine, len(update.tokens), finished=update.finished)
    return {"text": update.text, "output_ids": update.tokens, "meta_info": meta}


def _prompts(body: Mapping[str, Any], generator: Generator) -> tuple[list[list[int]], bool]:
    """The prompts as token ids, and whether it was one rather than a list. `input_ids` go before `text`."""
    ids = typed(body, "input_ids", list)
    if ids is not None:
        several = bool(ids) and isinstance(ids[0], list)
        prompts = ids if several else [ids]
        if not all(isinstance(prompt, list) for prompt in prompts):
            raise BadBody("input_ids: Input should be a valid list of token ids, or a list of such lists")
        return prompts, not several
    text = typed(body, "text", (str, list))
    if text is None:
        raise RequestError("Either text, input_ids or input_embeds should be provided.")
    texts = [text] if isinstance(text, str) else text
    if not all(isinstance(one, str) for one in texts):
        raise BadBody("text: Input should be a valid string or a list of strings")
    return [generator.engine.tokenizer.encode(one) for one in texts], isinstance(text, str)


def _spread(body: Mapping[str, Any], name: str, kind: type, count: int) -> list[Any]:
    """A field of which all prompts share one value, or each has its own in a list."""
    value = typed(body, name, (kind, list))
    if not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise RequestError(f"{name} has {len(value)} entries for {count} prompts.")
    if not all(isinstance(one, kind) for one in value):
        raise BadBody(f"{name}: Input should be a valid {kind.__name__} or a list of such, got {value!r}")
    return value

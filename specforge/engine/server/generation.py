"""From a prompt to a running request and its text: what the generating endpoints share."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from specforge.engine.build import Engine
from specforge.engine.request import Request
from specforge.engine.sampling import SamplingParams
from specforge.engine.scheduler import Progress
from specforge.engine.stopping import StopCheck
from specforge.engine.tokenizer import TextStream
from specforge.errors import RequestError


@dataclass(frozen=True)
class Update:
    """The state of an answer after some more tokens."""

    text: str
    """All text so far; once finished, without the stop string or stop token."""
    tokens: list[int]
    """All tokens so far."""
    finished: bool


class Generation:
    """One request on its way. Whoever starts it closes it, so that its slot is freed if nobody waits for the end."""

    def __init__(self, request: Request, engine: Engine) -> None:
        self.request = request
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Progress] = asyncio.Queue()
        self._finished = False

    def listen(self, progress: Progress) -> None:
        """Called on the engine's thread."""
        # The loop is gone when the server was stopped while the engine still worked.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, progress)

    async def updates(self) -> AsyncIterator[Update]:
        """The answer as it grows; a slow reader misses intermediate states. The last one is finished."""
        stream = TextStream(self._engine.tokenizer, skip_special=self.request.params.skip_special_tokens)
        tokens: list[int] = []
        while not self._finished:
            arrived = [await self._queue.get()]
            while not self._queue.empty():
                arrived.append(self._queue.get_nowait())
            new = list(itertools.chain.from_iterable(progress.tokens for progress in arrived))
            self._finished = arrived[-1].finished
            tokens.extend(new)
            yield Update(self._text(stream, new), tokens.copy(), self._finished)

    def close(self) -> None:
        """Abort the request if it is not finished."""
        if not self._finished:
            self._engine.scheduler.abort(lambda request: request is self.request)

    def _text(self, stream: TextStream, new: list[int]) -> str:
        finish = self.request.finish
        if not self._finished or finish is None:
            stream.feed(new)
            return stream.text
        matched = finish.detail.get("matched")
        trims = not self.request.params.no_stop_trim
        stream.feed(new[:-1] if isinstance(matched, int) and trims else new)
        stream.finish()
        if isinstance(matched, str):
            end = stream.text.find(matched)
            return stream.text[: end if trims else end + len(matched)] if end >= 0 else stream.text
        return stream.text


class Generator:
    """Checks requests and starts them."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._served = itertools.count()

    def prepare(
        self, prompt: Sequence[int], params: SamplingParams, rid: str | None = None, *, streams: bool
    ) -> Callable[[], Generation]:
        """Check one request; what is returned starts it. So that of several none runs if one is refused.

        Raises RequestError with SGLang's reason where it can't be served.
        """
        engine = self.engine
        self._check(prompt, params)
        rid = rid or uuid.uuid4().hex
        room = max(0, engine.context - len(prompt) - 2)
        limit = room if params.max_new_tokens is None else min(params.max_new_tokens, room)
        stops = frozenset() if params.ignore_eos else frozenset(params.stop_token_ids) | engine.eos
        seed = params.sampling_seed
        request = Request(
            rid=rid,
            tokens=list(prompt),
            prompt_length=len(prompt),
            params=params,
            limit=limit,
            # Without a seed of its own a request's numbers follow from the server's seed and the order of arrival.
            seed=(engine.arguments.random_seed << 32) + next(self._served) if seed is None else seed,
            stop=StopCheck(params.stop, stops, partial(TextStream, engine.tokenizer)),
        )
        return partial(self._start, request, streams)

    def _start(self, request: Request, streams: bool) -> Generation:
        generation = Generation(request, self.engine)
        self.engine.scheduler.submit(request, generation.listen, streams=streams)
        return generation

    def _check(self, prompt: Sequence[int], params: SamplingParams) -> None:
        engine = self.engine
        if not prompt:
            raise RequestError("The prompt is empty: at least one token is needed.")
        for token in prompt:
            if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < engine.vocabulary:
                raise RequestError(f"input_ids must be in [0, {engine.vocabulary - 1}], got {token!r}.")
        count = len(prompt) + engine.reserved
        if count >= engine.context:
            raise RequestError(
                f"The input ({count} tokens) is longer than the model's context length ({engine.context} tokens)."
            )
        new = params.max_new_tokens
        if new is not None and count + new > engine.context:
            raise RequestError(
                f"Requested token count exceeds the model's maximum context length of {engine.context} tokens. You "
                f"requested a total of {count + new} tokens: {count} tokens from the input messages and {new} tokens "
                "for the completion. Please reduce the number of tokens in the input messages or the completion to fit "
                "within the limit."
            )

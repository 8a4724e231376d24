"""Server-sent events, and what a stream says while it runs.

SGLang's ``/generate`` sends the text so far with every chunk. Decoding each of them would be work quadratic in
the length of the answer; only the token count is read from a chunk (it stands near its end), and the last
chunk alone is decoded.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, Protocol

import orjson

from specforge.client.reply import MalformedReply, Reply, parse_generate, spec_counts

_DONE = b"[DONE]"
_COUNT = b'"completion_tokens":'


class ByteStream(Protocol):
    """The part of aiohttp's response body that is read here."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Whatever bytes have arrived, as they arrive."""
        ...


class EventSplitter:
    """Cuts received bytes into server-sent events; an event may come in several pieces, and a piece hold several."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, received: bytes) -> list[bytes]:
        """The data of each event that is whole now, without its ``data:`` prefix; ``[DONE]`` is left out."""
        lines = received.split(b"\n")
        if self._pending:
            # Pieces of one line are few: a chunk is at most some packets long.
            lines[0] = self._pending + lines[0]
        self._pending = lines.pop()
        found = []
        for line in lines:
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data != _DONE:
                    found.append(data)
        return found


def tokens_so_far(data: bytes) -> int | None:
    """The last ``completion_tokens`` in a chunk of JSON, found from its end without decoding it.

    Quotes inside a JSON string are escaped, so the text of an answer can't imitate the field.
    """
    at = data.rfind(_COUNT)
    if at < 0:
        return None
    at += len(_COUNT)
    end = at
    while end < len(data) and data[end] in b" 0123456789":
        end += 1
    digits = data[at:end].strip()
    return int(digits) if digits else None


def _note_tokens(reply: Reply, count: int, now: float) -> None:
    gained = count - reply.completion_tokens
    if gained <= 0:
        return
    if reply.first_token_at is None:
        reply.first_token_at = now
    reply.chunks.append((now, gained))
    reply.completion_tokens = count


async def read_generate_stream(stream: ByteStream, clock: Any = time.perf_counter) -> Reply:
    """Reads a streamed ``/generate`` to its end.

    Raises:
        MalformedReply: the stream ended without a chunk that has a finish reason, or sent an error.
    """
    progress = Reply()
    last = b""
    feed = EventSplitter().feed
    async for received in stream.iter_any():
        now = clock()
        for data in feed(received):
            count = tokens_so_far(data)
            if count is not None:
                _note_tokens(progress, count, now)
            last = data
    reply = parse_generate(_decode(last))
    if not reply.finish_reason:
        raise MalformedReply("the stream ended before the answer did")
    reply.first_token_at = progress.first_token_at
    reply.chunks = progress.chunks
    return reply


async def read_chat_stream(stream: ByteStream, clock: Any = time.perf_counter) -> Reply:
    """Reads a streamed chat completion to its end (its deltas are not cumulative, so each is decoded).

    Raises:
        MalformedReply: the stream ended without a finish reason or without token counts, or sent an error.
    """
    reply = Reply()
    text: list[str] = []
    reasoning: list[str] = []
    usage: dict[str, Any] | None = None
    feed = EventSplitter().feed
    async for received in stream.iter_any():
        now = clock()
        for chunk in map(_decode, feed(received)):
            try:
                for choice in chunk.get("choices") or ():
                    delta = choice.get("delta") or {}
                    content, thought = delta.get("content"), delta.get("reasoning_content")
                    if content:
                        text.append(content)
                    if thought:
                        reasoning.append(thought)
                    if (content or thought) and reply.first_token_at is None:
                        reply.first_token_at = now
                    reply.finish_reason = choice.get("finish_reason") or reply.finish_reason
                if chunk.get("usage"):
                    usage = chunk["usage"]
                    _note_tokens(reply, usage["completion_tokens"], now)
                details = (chunk.get("sglext") or {}).get("spec_tokens_details")
                if details:
                    reply.spec = spec_counts(details[0] if isinstance(details, list) else details)
            except (KeyError, TypeError, AttributeError) as error:
                raise MalformedReply(f"no chat chunk: {error!r}") from error
    if usage is None or not reply.finish_reason:
        raise MalformedReply("the stream ended before the answer did")
    reply.text = "".join(text)
    reply.reasoning = "".join(reasoning) or None
    reply.completion_tokens = usage["completion_tokens"]
    reply.prompt_tokens = usage.get("prompt_tokens", 0)
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    reply.cached_tokens = cached
    return reply


def _decode(data: bytes) -> Any:
    try:
        chunk = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedReply(f"no JSON in the stream: {data[:80]!r}") from error
    if not isinstance(chunk, dict):
        raise MalformedReply(f"no object in the stream: {data[:80]!r}")
    if chunk.get("error"):
        raise MalformedReply(f"the stream reported an error: {str(chunk['error'])[:200]}")
    return chunk

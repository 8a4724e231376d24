"""A server that costs almost nothing, so that the client is what is measured: prepared bytes over bare asyncio.

    python tests/perf/client/streamer.py PORT CHUNKS

``/generate`` streams CHUNKS chunks of one token, the text cumulative as SGLang's is; each is a write of its own, and
between two of them every other stream gets its turn. The other routes say what a client asks before it measures.
"""

from __future__ import annotations

import asyncio
import sys

import orjson

_MODEL = "streamer/model"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: "
_WORD = " word"


def _meta_info(tokens: int, reason: dict[str, str] | None) -> dict[str, object]:
    return {
        "id": "0123456789abcdef0123456789abcdef",
        "finish_reason": reason,
        "prompt_tokens": 32,
        "weight_version": "default",
        "total_retractions": 0,
        "completion_tokens": tokens,
        "cached_tokens": 0,
        "e2e_latency": 0.5,
    }


def _events(chunks: int) -> list[bytes]:
    ids = list(range(1000, 1000 + chunks))
    events = []
    for at in range(1, chunks + 1):
        reason = {"type": "length"} if at == chunks else None
        chunk = {"text": _WORD * at, "output_ids": ids[:at], "meta_info": _meta_info(at, reason)}
        events.append(b"data: %s\n\n" % orjson.dumps(chunk))
    events.append(b"data: [DONE]\n\n")
    return [b"%x\r\n%s\r\n" % (len(event), event) for event in events] + [b"0\r\n\r\n"]


class Streamer(asyncio.Protocol):
    """One connection: whole requests in, prepared bytes out."""

    def __init__(self, events: list[bytes]) -> None:
        self._events = events
        self._received = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, rest = self._received.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            if len(rest) < length:
                return
            self._received = rest[length:]
            self._answer(lines[0].split(b" ")[1], rest[:length])

    def _answer(self, path: bytes, body: bytes) -> None:
        if path == b"/generate" and b'"stream":true' in body.replace(b" ", b""):
            task = asyncio.ensure_future(self._stream())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        content = orjson.dumps(_said(path))
        self._transport.write(_HEAD + b"application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))

    async def _stream(self) -> None:
        self._transport.write(_HEAD + b"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in self._events:
            self._transport.write(event)
            await asyncio.sleep(0)


def _said(path: bytes) -> object:
    if path == b"/v1/tokenize":
        return {"tokens": list(range(32)), "count": 32, "max_model_len": 32768}
    if path == b"/v1/models":
        return {"object": "list", "data": [{"id": _MODEL, "root": _MODEL, "max_model_len": 32768}]}
    if path == b"/v1/chat/completions":
        message = {"role": "assistant", "content": _WORD}
        choice = {"index": 0, "message": message, "finish_reason": "length", "meta_info": _meta_info(1, None)}
        return {"choices": [choice], "usage": {"prompt_tokens": 32, "completion_tokens": 1, "total_tokens": 33}}
    if path == b"/generate":
        return {"text": _WORD, "output_ids": [1000], "meta_info": _meta_info(1, {"type": "length"})}
    return {"model_path": _MODEL, "version": "0", "internal_states": [{}]}


async def main(port: int, chunks: int) -> None:
    events = _events(chunks)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Streamer(events), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))

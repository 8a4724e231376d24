"""The least that a client can do: an aiohttp loop that counts tokens. Prints its rate and CPU time as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import aiohttp
import orjson

_HEADERS = {"Content-Type": "application/json"}


async def _send(url: str, bodies: list[bytes], concurrency: int) -> tuple[int, float]:
    queue, tokens = iter(bodies), 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=_HEADERS) as session:

        async def slot() -> None:
            nonlocal tokens
            for body in queue:
                async with session.post(url, data=body) as response:
                    tokens += orjson.loads(await response.read())["usage"]["completion_tokens"]

        # Connections are opened outside the window, as the other clients' warm-up does.
        first = bodies[0]
        await asyncio.gather(*(_once(session, url, first) for _ in range(concurrency)))
        began = time.perf_counter()
        await asyncio.gather(*(slot() for _ in range(concurrency)))
        return tokens, time.perf_counter() - began


async def _once(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    async with session.post(url, data=body) as response:
        await response.read()


def main(url: str, prompts_path: str, concurrency: int, count: int) -> None:
    with open(prompts_path, "rb") as file:
        prompts = [orjson.loads(line) for line in file]
    base = {"model": "m", "temperature": 0, "max_tokens": 2048, "return_meta_info": True, "return_token_ids": True}
    rendered = [orjson.dumps({**base, "messages": prompt["messages"]}) for prompt in prompts]
    bodies = [rendered[at % len(rendered)] for at in range(count)]
    cpu = time.process_time()
    tokens, seconds = asyncio.run(_send(f"{url}/v1/chat/completions", bodies, concurrency))
    cpu = time.process_time() - cpu
    print(json.dumps({"rate": count / seconds, "cpu": cpu / (count + concurrency), "tokens": tokens}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

"""Several generations of one HTTP request, in the order their updates come."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from specforge.engine.server.generation import Generation, Update


async def merged(generations: Sequence[Generation]) -> AsyncIterator[tuple[int, Update]]:
    """Updates with the index of their generation. At the end, be it early, all generations are closed."""
    # Room for one: who reads slowly gets fewer updates, not later ones.
    queue: asyncio.Queue[tuple[int, Update]] = asyncio.Queue(maxsize=1)

    async def forward(index: int, generation: Generation) -> None:
        async for update in generation.updates():
            await queue.put((index, update))

    tasks = [asyncio.create_task(forward(*pair)) for pair in enumerate(generations)]
    running = len(tasks)
    try:
        while running:
            index, update = await queue.get()
            running -= update.finished
            yield index, update
    finally:
        for task, generation in zip(tasks, generations, strict=True):
            task.cancel()
            generation.close()
        await asyncio.gather(*tasks, return_exceptions=True)


async def results(generations: Sequence[Generation]) -> list[Update]:
    """All finished answers, in order."""
    finished: list[Update | None] = [None] * len(generations)
    async with aclosing(merged(generations)) as updates:  # type: ignore[type-var]
        async for index, update in updates:
            if update.finished:
                finished[index] = update
    return [update for update in finished if update is not None]

"""The engine without its server, for tests of what it computes."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from specforge.engine.arguments import parse
from specforge.engine.build import Engine, build
from specforge.engine.request import Request
from specforge.engine.sampling import SamplingParams
from specforge.engine.scheduler import Progress
from specforge.engine.stopping import StopCheck
from specforge.engine.tokenizer import TextStream


@contextmanager
def local_engine(model: Path, *flags: str) -> Iterator[Engine]:
    """An engine whose scheduler runs, for the length of a block."""
    engine = build(parse(["--model-path", str(model), "--random-seed", "1", *flags]))
    engine.scheduler.start()
    try:
        yield engine
    finally:
        engine.scheduler.close()


def run(engine: Engine, prompts: Sequence[Sequence[int]], new_tokens: int = 32, **params: Any) -> list[Request]:
    """Serve all prompts; the finished requests in order. `sampling_seed` counts up from prompt to prompt."""
    seed = params.pop("sampling_seed", 0)
    given = {"temperature": 0.0, "ignore_eos": True, "max_new_tokens": new_tokens, **params}
    wanted = SamplingParams.parse(given, engine.vocabulary)
    left = threading.Semaphore(0)

    def listen(progress: Progress) -> None:
        assert progress.finished
        left.release()

    requests = []
    for number, prompt in enumerate(prompts):
        stops = frozenset() if wanted.ignore_eos else engine.eos
        stop = StopCheck(wanted.stop, stops, partial(TextStream, engine.tokenizer))
        requests.append(Request(f"r{number}.", list(prompt), len(prompt), wanted, new_tokens, seed + number, stop))
    for request in requests:
        engine.scheduler.submit(request, listen, streams=False)
    for _ in requests:
        assert left.acquire(timeout=120), engine.scheduler.failure
    return requests

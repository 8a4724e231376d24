"""More prompts than a dataset has: the same ones again, each time in a new order."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from specforge.datasets.model import Benchmark, Prompt

_WARMUP = 256  # prompts outside the measured ones that are kept, at most


def take(everything: Benchmark, count: int, distinct: int, seed: int) -> tuple[Benchmark, int]:
    """``count`` prompts of which at most ``distinct`` differ, and how many of them are repeats.

    The first ``distinct`` come in drawing order; then all of them again, in an order that the seed and the number of
    the pass decide. A prompt's row id in pass k (from 2) is ``ID~k``, so that ids stay unique.
    """
    once = everything.prompts[: min(count, distinct)]
    outside = everything.prompts[len(once) : len(once) + _WARMUP]
    prompts = list(once)
    times = 1
    while len(prompts) < count:
        times += 1
        ordered = sorted(once, key=lambda prompt: _order(seed, times, prompt))
        prompts += [replace(prompt, row_id=f"{prompt.row_id}~{times}") for prompt in ordered[: count - len(prompts)]]
    repeats = count - len(once)
    notes = list(everything.notes)
    if repeats:
        notes.append(
            f"{repeats} of {count} prompts are repeats of {len(once)}; a server with a prefix cache has seen them"
        )
    return replace(everything, prompts=tuple(prompts), warmup=outside or once, notes=tuple(notes)), repeats


def _order(seed: int, times: int, prompt: Prompt) -> bytes:
    return hashlib.sha256(f"{seed}:{times}:{prompt.row_id}".encode()).digest()

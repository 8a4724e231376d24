"""Speed of the engine, as ratios of steps measured in turn: pytest tests/perf/engine_benchmark.py -s

Not collected by default. Each figure is the least of many runs, and what is compared is run alternately, so that a
busy machine disturbs both alike. On a machine where OpenBLAS has threads to spare: OPENBLAS_NUM_THREADS=1.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, perf_counter

import numpy as np
import pytest
import requests

from specforge.engine.attention import Step
from specforge.engine.cache import SlotCache
from specforge.engine.drafts.eagle3 import Eagle3Head
from specforge.engine.model import Llama
from tests.engine import tiny
from tests.support.processes import ROOT, free_port

DEEP = tiny.Shape(layers=12, hidden=160, inner=448, heads=5, kv_heads=1, head_size=32, vocabulary=4096, context=2048)
"""About four million parameters, deep and thin."""
LENGTH = 150
ROUNDS = 300
VERIFY_AT_MOST = 1.6
BATCH_AT_LEAST = 2.0
DRAFT_AT_MOST = 0.25
READY_WITHIN = 2.0


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("deep")
    weights = tiny.make_target(root / "target", DEEP)
    tiny.make_eagle3(root / "eagle3", DEEP, weights)
    return root / "target", root / "eagle3"


@pytest.fixture(scope="module")
def target(folders: tuple[Path, Path]) -> Llama:
    return Llama.load(folders[0], "--model-path", DEEP.context)


def step(requests_: int, tokens: int) -> Step:
    lengths = np.full(requests_, LENGTH)
    return Step(0, lengths, lengths[:, None] + np.arange(tokens), np.tri(tokens, dtype=np.bool_))


def target_step(target: Llama, requests_: int, tokens: int) -> Callable[[], object]:
    cache = target.new_cache(8)
    cache.reserve(LENGTH + tokens)

    def run() -> object:
        hidden, _ = target.forward(np.full(requests_ * tokens, 7), step(requests_, tokens), cache)
        return target.logits(hidden).argmax(axis=-1)

    return run


def least(*runs: Callable[[], object]) -> list[float]:
    """The shortest time of each, in seconds, all run in turn."""
    times = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for number, run in enumerate(runs):
            started = perf_counter()
            run()
            times[number] = min(times[number], perf_counter() - started)
    return times


def test_verifying_four_tokens_costs_little_more_than_one(target: Llama) -> None:
    one, four = least(target_step(target, 1, 1), target_step(target, 1, 4))
    print(f"\none token {one * 1e3:.2f} ms ({1 / one:.0f} steps/s), four {four * 1e3:.2f} ms: {four / one:.2f}")
    assert four / one <= VERIFY_AT_MOST


def test_four_requests_decode_at_more_than_twice_the_rate_of_one(target: Llama) -> None:
    one, four = least(target_step(target, 1, 1), target_step(target, 4, 1))
    print(f"\nbatch 4 gives {4 * one / four:.2f} times the tokens of batch 1")
    assert 4 * one / four >= BATCH_AT_LEAST


def test_a_draft_step_costs_a_fraction_of_the_targets(target: Llama, folders: tuple[Path, Path]) -> None:
    head = Eagle3Head.load(folders[1], target)
    cache: SlotCache = head.new_cache(8)
    state = np.ones((1, DEEP.hidden), np.float32)

    def draft() -> object:
        return head.logits(head.forward(np.array([7]), state, step(1, 1), cache)).argmax()

    one, drafted = least(target_step(target, 1, 1), draft)
    print(f"\na draft step is {drafted / one:.3f} of the target's")
    assert drafted / one <= DRAFT_AT_MOST


def test_it_is_ready_in_two_seconds(folders: tuple[Path, Path]) -> None:
    fastest = min(_start(folders[0]) for _ in range(3))
    print(f"\nready in {fastest:.2f} s")
    assert fastest <= READY_WITHIN


def _start(model: Path) -> float:
    port = free_port()
    command = [sys.executable, "-m", "specforge.engine", "--model-path", str(model), "--port", str(port)]
    started = monotonic()
    program = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while True:
            assert program.poll() is None
            try:
                if requests.get(f"http://127.0.0.1:{port}/ready", timeout=1).ok:
                    return monotonic() - started
            except requests.ConnectionError:
                assert monotonic() - started < 60
    finally:
        program.terminate()
        program.wait()

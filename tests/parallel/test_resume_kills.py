"""Runs killed at any moment, with workers and without, go on to a complete record: no answer lost, none twice."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable

import pytest

from tests.parallel.test_kills import WITHIN, none_left, wait_for_generations
from tests.plugin.stage import Stage
from tests.support.processes import Running
from tests.support.scripted import Pace, Replies, Script

CONFIGS, BENCHMARKS, ROUNDS = ("1,0,0,0", "2,3,1,4"), ("gsm8k:3", "mtbench:2"), 2
CELLS = [f"{config}-{benchmark}" for config in CONFIGS for benchmark in BENCHMARKS]
LISTS = ("--config-list", *CONFIGS, "--benchmark-list", *BENCHMARKS, "--rounds", str(ROUNDS))
SLOW = Script(replies=Replies(seed=3), pace=Pace(per_request=0.04))
REQUESTS = 44
"""About as many as a whole run makes, warm-up included."""
WORKERS_EVERY = 5  # runs of which one has workers


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_run_killed_at_whatever_moment_resumes_to_a_complete_record(stage: Stage, seed: int) -> None:
    after = random.Random(seed).randrange(1, REQUESTS)
    workers = [] if seed % WORKERS_EVERY else ["-n", "2"]
    ended_and_resumed(stage, after, lambda program: program.send(signal.SIGKILL), *workers)


@pytest.mark.slow
def test_ctrl_c_with_workers_leaves_what_can_be_resumed(stage: Stage) -> None:
    ended_and_resumed(stage, REQUESTS // 2, Running.interrupt, "-n", "2")


def ended_and_resumed(stage: Stage, after: int, end: Callable[[Running], None], *workers: str) -> None:
    """Ends a run after so many answers, goes on with it, and checks its record."""
    arguments = ["bench_tests", *stage.launching(SLOW), *LISTS]
    with stage.started(*arguments, *workers) as program:
        if wait_for_generations(stage, program, after):
            end(program)
        program.wait(WITHIN)
        none_left(stage)
    (path,) = stage.results.glob("*.json")
    before = stage.records()
    run = stage.pytest(*arguments, "--resume", str(path), *workers)
    assert run.code == 0, run.output
    assert [*stage.results.glob("*.json")] == [path]
    records = stage.records()
    assert list(records) == CELLS
    for cell, record in records.items():
        assert record["status"] == "ok"
        if before.get(cell, {}).get("status") == "ok":
            assert record["metrics"]["rounds"] == before[cell]["metrics"]["rounds"]
        everything = Counter((row_id, number) for row_id in record["benchmark"]["row_ids"] for number in range(ROUNDS))
        counting = Counter((row["row_id"], row["round"]) for row in stage.rows(record) if "superseded" not in row)
        assert counting == everything
        requests = record["requests"]
        assert Counter(zip(requests["row_id"], requests["round"], strict=True)) == everything
        assert [round_["usable"] for round_ in record["metrics"]["rounds"]] == [True] * ROUNDS

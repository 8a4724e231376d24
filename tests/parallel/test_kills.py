"""Workers, controllers and servers are killed: no process stays, no cell is recorded twice, the rest is complete."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable

import pytest

from tests.plugin.stage import Stage
from tests.support.processes import Process, Running, descendants, living, wait_until
from tests.support.scripted import Pace, Replies, Script

CONFIGS = ("1,0,0,0", "1,3,1,4", "2,0,0,0")
BENCHMARKS = ("gsm8k:4", "mtbench:2")
CELLS = {f"{config}-{benchmark}" for config in CONFIGS for benchmark in BENCHMARKS}
LISTS = ("--config-list", *CONFIGS, "--benchmark-list", *BENCHMARKS)
SLOW = Script(replies=Replies(seed=3), pace=Pace(per_request=0.2))
REQUESTS = 60
"""About as many as a whole run makes, warm-up included."""
WITHIN = 150.0
GONE_WITHIN = 45.0
"""A worker whose controller is gone takes up to 15 s to notice, its server 5 s more."""


def workers(pytest_process: Running) -> list[Process]:
    """The workers of a controller: its children that have started one of their own."""
    everyone = list(living())
    parents = {process.parent for process in everyone}
    return [process for process in everyone if process.parent == pytest_process.pid and process.pid in parents]


def generations(stage: Stage) -> int:
    """How many requests for tokens servers have answered so far."""
    if not stage.log.exists():
        return 0
    return stage.log.read_text(encoding="utf-8").count('"path":"/v1/chat/completions"')


def wait_for_generations(stage: Stage, program: Running, count: int) -> bool:
    """Waits until servers have answered so many requests; False where pytest ended before."""

    def reached_or_ended() -> bool:
        return generations(stage) >= count or program.process.poll() is not None

    wait_until(reached_or_ended, within=WITHIN, what=f"{count} answers")
    return program.process.poll() is None


def recorded(stage: Stage) -> list[str]:
    """The ids of the cells in the run's JSON, as often as they are there; none where there is no JSON yet."""
    if not any(stage.results.glob("*.json")):
        return []
    document = stage.document()
    entries = [*document["benchmarks"], *document["unmeasured"]]
    return [entry["name"].partition("[")[2].rstrip("]") for entry in entries]


def none_left(stage: Stage) -> None:
    wait_until(lambda: not stage.servers(), within=GONE_WITHIN, what="every server and supervisor is gone")


def test_a_killed_worker_loses_the_cell_that_it_died_in(stage: Stage):
    with stage.started("bench_tests", *stage.launching(SLOW), *LISTS, "-n", "2") as program:
        assert wait_for_generations(stage, program, 6)
        os.kill(workers(program)[0].pid, signal.SIGKILL)
        assert program.wait(WITHIN) == 1
    cells = recorded(stage)
    assert len(cells) == len(set(cells))
    assert len(CELLS - set(cells)) == 1
    (lost,) = CELLS - set(cells)
    # Pytest says it once or twice: where CI is set, the summary has the whole message too.
    crashed = set(re.findall(r"crashed while running '([^']*)'", program.output))
    assert crashed == {f"bench_tests/test_benchmark.py::test_benchmark[{lost}]"}
    assert all(record["status"] == "ok" for record in stage.records().values())
    assert stage.servers() == []


def test_ctrl_c_ends_workers_and_servers_and_keeps_finished_cells(stage: Stage):
    with stage.started("bench_tests", *stage.launching(SLOW), *LISTS, "-n", "2") as program:
        wait_until(lambda: recorded(stage), within=WITHIN, what="a finished cell")
        program.interrupt()
        assert program.wait(WITHIN) == 2
        none_left(stage)
    assert set(recorded(stage)) <= CELLS
    assert "INTERNALERROR" not in program.output


def kill_a_worker(stage: Stage, program: Running, chance: random.Random) -> None:  # noqa: ARG001
    found = workers(program)
    if found:
        os.kill(chance.choice(found).pid, signal.SIGKILL)


def kill_the_controller(stage: Stage, program: Running, chance: random.Random) -> None:  # noqa: ARG001
    program.send(signal.SIGKILL)


def kill_a_server(stage: Stage, program: Running, chance: random.Random) -> None:
    servers = {entry["pid"] for entry in stage.log_entries() if entry.get("event") == "start"}
    found = [process.pid for process in descendants(program.pid) if process.pid in servers]
    if found:
        os.kill(chance.choice(found), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_killed_at_whatever_moment(stage: Stage, seed: int):
    chance = random.Random(seed)
    kill: Callable[[Stage, Running, random.Random], None]
    kill = (kill_a_worker, kill_the_controller, kill_a_server)[seed % 3]
    with stage.started("bench_tests", *stage.launching(SLOW), *LISTS, "-n", "2") as program:
        if wait_for_generations(stage, program, chance.randrange(REQUESTS)):
            kill(stage, program, chance)
        code = program.wait(WITHIN)
        none_left(stage)
    cells = recorded(stage)
    assert len(cells) == len(set(cells))
    assert set(cells) <= CELLS
    if kill is kill_the_controller:
        assert code == -signal.SIGKILL or set(cells) == CELLS
        return
    assert code in (0, 1)
    assert len(CELLS - set(cells)) <= (1 if kill is kill_a_worker else len(BENCHMARKS))
    assert "INTERNALERROR" not in program.output

"""``--client-processes``: several processes are the one client that was asked for."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.commands.benchmarking import Benchmarking
from tests.support.processes import ROOT, descendants, running, wait_until
from tests.support.scripted import Fault, Pace, Script, Speculation
from tests.support.scripted_server import ScriptedServer

SPECULATING = Script(speculation=Speculation(), pace=Pace(per_request=0.01))


def test_two_processes_measure_what_one_does(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        alone, shared = (
            benchmark_command(
                server.base_url, "--num-prompts", 30, "--concurrency", 6, "--rounds", 2, "--client-processes", processes
            ).record
            for processes in (1, 2)
        )
        assert server.max_in_flight == 6
    for name in ("row_id", "round", "output_tokens", "verify_steps", "correct_drafts", "status"):
        assert shared["requests"][name] == alone["requests"][name]
    for name in ("output_tokens", "spec_verify_ct", "acceptance_length", "correct_drafts_histogram", "requests"):
        assert shared["metrics"][name] == alone["metrics"][name]
    assert shared["environment"]["client"]["processes"] == 2
    assert len(shared["metrics"]["rounds"]) == 2


def test_every_row_of_several_processes_is_whole_and_there_once(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 40, "--concurrency", 8, "--client-processes", 3)
    assert sorted(row["row_id"] for row in done.rows()) == sorted(done.record["benchmark"]["row_ids"])
    assert sorted(path.name for path in done.path.parent.iterdir()) == ["record.json", "record.rows.jsonl"]


def test_several_processes_share_an_open_loops_arrivals(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 21, "--request-rate", 100, "--client-processes", 2)
    assert done.status == 0
    assert len({row["row_id"] for row in done.rows()}) == 21


def test_a_round_that_one_process_spoils_is_measured_again_by_all(benchmark_command: Benchmarking) -> None:
    once = Fault("status", status=503, after=8, times=1)
    with ScriptedServer(Script(speculation=Speculation(), faults=(once,))) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 20, "--concurrency", 4, "--client-processes", 2)
    record = done.record
    assert (record["status"], record["metrics"]["rounds_repeated"], record["metrics"]["requests"]) == ("ok", 1, 20)
    assert sum(row.get("superseded", False) for row in done.rows()) == 20


def test_there_are_never_more_processes_than_slots(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 4, "--concurrency", 1, "--client-processes", 5)
        assert server.max_in_flight == 1
    assert done.record["environment"]["client"]["processes"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["a client process", "the command itself"])
def test_a_process_that_is_killed_leaves_none_of_the_others(tmp_path: Path, victim: str) -> None:
    path = tmp_path / "record.json"
    with ScriptedServer(Script(faults=(Fault("hang", after=9),))) as server:
        command = [sys.executable, "-m", "specforge.cli", "benchmark", "--dataset", "gsm8k", "--samples"]
        command += ["--base-url", server.base_url, "--concurrency", "4", "--output-json", str(path)]
        with running([*command, "--client-processes", "2"], cwd=ROOT, log=tmp_path / "log") as program:
            wait_until(lambda: len(server.generations) >= 9, within=60)
            family = [process.pid for process in descendants(program.pid)]
            workers = [process.pid for process in descendants(program.pid) if "spawn_main" in process.command]
            assert len(workers) == 2
            os.kill(workers[0] if victim == "a client process" else program.pid, signal.SIGKILL)
            program.wait(within=60)
            wait_until(lambda: not any(map(_lives, family)), within=30, what="all processes ended")
            said = program.output
    if victim == "a client process":
        assert "specforge benchmark: client process 0 died (it was none of the server's)" in said


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

"""The helpers that look for processes left behind: one that misses them would hide the fault it is for."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.support.processes import (
    Running,
    descendants,
    end_group,
    in_group,
    in_session,
    mentioning,
    run_pytest,
    running,
    wait_until,
)

DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
STUBBORN = f"""
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {DEAF!r}, sys.argv[1]])
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def token() -> str:
    return f"token-{uuid.uuid4().hex}"


def test_a_wait_returns_what_it_waited_for_and_fails_when_it_never_comes() -> None:
    values = iter([0, 0, 7])
    assert wait_until(lambda: next(values), within=10) == 7
    with pytest.raises(AssertionError, match="not within 0 s: the moon"):
        wait_until(lambda: False, within=0, what="the moon")


def test_processes_are_found_by_token_session_group_and_descent(tmp_path: Path, token: str) -> None:
    with running([sys.executable, "-c", STUBBORN, token], cwd=tmp_path, grace=0.1) as program:
        program.wait_for_output("ready", within=30)
        program.wait_for_output("deaf", within=30)
        found = {process.pid for process in mentioning(token)}
        child = found - {program.pid}
        assert len(found) == 2
        assert {process.pid for process in in_session(program.pid)} == found
        assert {process.pid for process in in_group(program.pid)} == found
        assert {process.pid for process in descendants(program.pid)} == child
    assert mentioning(token) == []


def test_a_child_that_outlived_its_parent_is_still_found_and_ended(tmp_path: Path, token: str) -> None:
    with running([sys.executable, "-c", STUBBORN, token], cwd=tmp_path, grace=0.1) as program:
        program.wait_for_output("deaf", within=30)
        program.process.kill()
        program.wait(within=10)
        assert len(mentioning(token)) == 1
        end_group(program.pid, grace=0.1)
        assert mentioning(token) == []


def test_a_zombie_is_no_process_left_behind(token: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass", token])
    wait_until(lambda: not mentioning(token), within=30)
    assert child.wait() == 0


def test_output_that_never_comes_fails_with_what_there_was(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('all that I say')"]
    with (
        running(command, cwd=tmp_path) as program,
        pytest.raises(AssertionError, match=r"(?s)ended with 0 before .*all that I say"),
    ):
        program.wait_for_output("something else", within=30)


def test_a_program_that_does_not_end_in_time_is_a_failure_and_is_ended(tmp_path: Path, token: str) -> None:
    (tmp_path / "test_stuck.py").write_text("import signal\ndef test_stuck():\n    signal.pause()\n")
    with pytest.raises(AssertionError, match="still running after 3 s"):
        run_pytest(f"--rootdir={tmp_path}", "-k", f"not {token}", cwd=tmp_path, within=3)
    assert mentioning(token) == []


def test_a_spawned_pytest_gives_its_exit_status_and_output(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text("def test_good(): assert True\ndef test_bad(): assert not 1\n")
    done = run_pytest(f"--rootdir={tmp_path}", "-q", cwd=tmp_path)
    assert done.code == 1
    assert "1 failed, 1 passed" in done.output


def test_ending_an_ended_program_is_no_error(tmp_path: Path) -> None:
    program = Running([sys.executable, "-c", "pass"], cwd=tmp_path, environment={}, log=tmp_path / "log")
    assert program.wait(within=30) == 0
    program.end()

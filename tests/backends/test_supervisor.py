"""The supervisor's own protocol, spoken to it directly: an order in, an event a line out.

The harness starts it isolated from this environment (``-I -S``), where no coverage is measured; here it is a program
like any other.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.backends.test_supervised import DAEMONIZER, SLEEPER, STUBBORN


class Supervised:
    """A supervisor under test."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def until_up(self) -> None:
        """Waits until the command has said that it is up, on the log."""
        assert self.process.stderr is not None
        assert self.process.stderr.readline() == "up\n"

    def told(self) -> list[dict[str, Any]]:
        """What it has said when it has ended, without process ids."""
        assert self.process.stdout is not None
        events = [json.loads(line) for line in self.process.stdout]
        assert self.process.wait(30) == 0
        return [{name: value for name, value in event.items() if name != "pid"} for event in events]


@contextmanager
def supervised(*command: str, stop_command: Sequence[str] = (), grace: float = 5.0) -> Iterator[Supervised]:
    with subprocess.Popen(
        [sys.executable, "-m", "specforge.backends.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        order = {"command": command, "environment": {}, "stop_command": list(stop_command), "grace": grace}
        process.stdin.write(json.dumps(order) + "\n")
        yield Supervised(process)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def exited(status: int) -> list[dict[str, Any]]:
    return [{"event": "started"}, {"event": "exited", "status": status}, {"event": "gone", "left": []}]


def test_a_command_that_ends_by_itself_is_reported_with_its_status():
    with supervised(*python("raise SystemExit(3)")) as supervisor:
        assert supervisor.told() == exited(3)


def test_a_command_that_can_not_be_started_is_reported_and_nothing_else():
    with supervised("/nowhere/server") as supervisor:
        assert supervisor.told() == [{"event": "failed", "error": "/nowhere/server: No such file or directory"}]


@pytest.mark.parametrize(
    "code, status", [(SLEEPER, -signal.SIGTERM), (STUBBORN, -signal.SIGKILL), (DAEMONIZER, -signal.SIGTERM)]
)
def test_the_end_of_its_input_ends_the_command_and_what_it_left_behind(code: str, status: int):
    with supervised(*python(code), grace=0.2) as supervisor:
        supervisor.until_up()
        supervisor.process.stdin.close()
        assert supervisor.told() == exited(status)


@pytest.mark.parametrize("stop_command, status", [(python("pass"), 0), (("/nowhere/stop",), None)])
def test_sigterm_runs_the_stop_command_first(stop_command: Sequence[str], status: int | None):
    with supervised(*python(SLEEPER), stop_command=stop_command) as supervisor:
        supervisor.until_up()
        supervisor.process.terminate()
        started, ended, gone = exited(-signal.SIGTERM)
        assert supervisor.told() == [started, {"event": "stop_command", "status": status}, ended, gone]


def test_ctrl_c_is_left_to_pytest():
    with supervised(*python(SLEEPER)) as supervisor:
        supervisor.until_up()
        supervisor.process.send_signal(signal.SIGINT)
        supervisor.process.terminate()
        assert supervisor.told() == exited(-signal.SIGTERM)


def test_without_an_order_it_ends():
    done = subprocess.run(
        [sys.executable, "-m", "specforge.backends.supervisor"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b""

"""What a supervised command leaves behind: nothing, however it or its parent ends."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from specforge.backends.supervised import SupervisedProcess
from tests.support.processes import ROOT, in_session, mentioning, running, wait_until

SLEEPER = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
# Leaves a daemon behind in the way of the textbooks: two forks, a session of its own, and no parent that waits.
DAEMONIZER = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print('up', flush=True)
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""
# A stand-in for pytest: starts a server under supervision, prints what is found of it, and then does as it is told.
PARENT = """
import os, signal, subprocess, sys, time
from specforge.backends.supervised import SupervisedProcess
with open(sys.argv[1], 'wb') as log:
    server = SupervisedProcess(sys.argv[3:], dict(os.environ), log, grace=0.5)
if sys.argv[2] == 'fork' and os.fork() == 0:
    signal.pause()
if sys.argv[2] == 'spawn':
    idle = 'import signal; signal.pause()'
    subprocess.Popen([sys.executable, '-c', idle, sys.argv[-1] + '-bystander'], close_fds=False)
while b'up' not in open(sys.argv[1], 'rb').read():
    time.sleep(0.01)
print('supervised', flush=True)
if sys.argv[2] == 'raise':
    raise RuntimeError('on purpose')
if sys.argv[2] != 'return':
    signal.pause()
"""

Start = Callable[..., SupervisedProcess]


@pytest.fixture
def token() -> str:
    """A word on the command lines of one test's processes."""
    return f"--token-{uuid.uuid4().hex}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def start(log: Path, token: str) -> Iterator[Start]:
    """Starts Python code under supervision and waits until it has said that it is up."""
    started: list[SupervisedProcess] = []

    def starter(code: str, stop_command: Sequence[str] = (), grace: float = 0.5) -> SupervisedProcess:
        with log.open("wb") as file:
            command = [sys.executable, "-c", code, token]
            process = SupervisedProcess(command, dict(os.environ), file, stop_command, grace)
        started.append(process)
        wait_until(lambda: b"up" in log.read_bytes() or process.ended, within=10)
        return process

    yield starter
    for process in started:
        process.stop()


def test_a_stop_ends_the_command_by_sigterm(start: Start, token: str):
    process = start(SLEEPER)
    process.stop()
    assert process.exit_status == -signal.SIGTERM
    assert mentioning(token) == []


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(start: Start, token: str):
    process = start(STUBBORN, grace=0.3)
    began = time.monotonic()
    process.stop()
    assert time.monotonic() - began >= 0.3
    assert process.exit_status == -signal.SIGKILL
    assert mentioning(token) == []


def test_stopping_again_does_nothing(start: Start):
    process = start(SLEEPER)
    process.stop()
    process.stop()
    assert process.exit_status == -signal.SIGTERM


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux hands orphans to the supervisor")
def test_a_daemon_that_left_the_session_and_ignores_sigterm_is_ended(start: Start, token: str):
    process = start(DAEMONIZER)
    assert process.pid is not None
    assert len(mentioning(token)) > len(in_session(process.pid))
    process.stop()
    assert mentioning(token) == []


def test_children_are_ended_when_the_command_dies_by_itself(start: Start, token: str):
    process = start(
        "import os, signal\n"
        "if os.fork() == 0:\n"
        "    print('up', flush=True)\n"
        "    signal.pause()\n"
        "while b'up' not in open('/proc/self/fd/1', 'rb').read(): pass\n"
        "os._exit(7)"
    )
    assert process.wait(10)
    assert process.describe_end() == "exited with 7"
    wait_until(lambda: not mentioning(token), within=10)


def test_a_death_is_noticed_at_once(start: Start):
    process = start(SLEEPER)
    assert not process.ended
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10)
    assert process.describe_end() == "was ended by signal 9"


def test_a_command_that_does_not_exist_is_reported(log: Path):
    with log.open("wb") as file:
        process = SupervisedProcess(["/no/such/program"], {}, file)
    assert process.wait(10)
    assert process.describe_end() == "could not be started: /no/such/program: No such file or directory"
    process.stop()


def test_the_command_gets_the_environment_and_the_log_and_no_other_descriptor(start: Start, log: Path):
    start("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1], os.environ['HOME'], 'up', flush=True)")
    assert log.read_text() == f"[0, 1, 2] {os.environ['HOME']} up\n"


def test_the_command_may_handle_ctrl_c_as_if_started_from_a_terminal(start: Start, log: Path):
    process = start("import signal; print('up', signal.getsignal(signal.SIGINT) is signal.default_int_handler)")
    assert process.wait(10)
    assert log.read_text() == "up True\n"


def test_the_stop_command_runs_before_the_signals(start: Start, tmp_path: Path):
    # As a container's command would, this one ends only when its stop command asks it to.
    flag = tmp_path / "please-stop"
    process = start(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        f"while not os.path.exists({str(flag)!r}): time.sleep(0.01)",
        stop_command=[sys.executable, "-c", f"open({str(flag)!r}, 'w')"],
        grace=5.0,
    )
    process.stop()
    assert process.exit_status == 0
    assert process.stop_command_status == 0


def test_the_stop_command_runs_when_the_command_dies_by_itself(start: Start, tmp_path: Path):
    flag = tmp_path / "stopped"
    process = start("print('up', flush=True)", stop_command=[sys.executable, "-c", f"open({str(flag)!r}, 'w')"])
    process.stop()
    assert flag.exists()


def test_a_stop_command_that_fails_does_not_keep_the_server_alive(start: Start, token: str):
    process = start(SLEEPER, stop_command=["/no/such/program"])
    process.stop()
    assert process.stop_command_status is None
    assert mentioning(token) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_server_outlives_a_parent_ended_by_a_signal(number: signal.Signals, log: Path, token: str, tmp_path: Path):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"these tests were started with {number.name} ignored, and so is the parent (nohup)")
    assert_ended_with_parent("wait", DAEMONIZER, log, token, tmp_path, number)


@pytest.mark.parametrize("way", ["return", "raise"])
def test_no_server_outlives_a_parent_that_forgot_to_stop_it(way: str, log: Path, token: str, tmp_path: Path):
    assert_ended_with_parent(way, SLEEPER, log, token, tmp_path, None)


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_a_bystander_with_the_parents_descriptors_keeps_no_server_alive(
    way: str, log: Path, token: str, tmp_path: Path
):
    assert_ended_with_parent(way, SLEEPER, log, token, tmp_path, signal.SIGKILL)


def assert_ended_with_parent(
    way: str, code: str, log: Path, token: str, tmp_path: Path, number: signal.Signals | None
) -> None:
    """The server of a parent that ends in the given way is gone soon after."""
    command = [sys.executable, "-c", PARENT, str(log), way, sys.executable, "-c", code, token]
    with running(command, cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)}) as parent:
        parent.wait_for_output("supervised", within=20)
        if number is not None:
            parent.send(number)
        parent.wait(10)
        wait_until(lambda: not servers(token), within=10, what="the server is gone")


def servers(token: str) -> list[str]:
    """Command lines of the test's server, which unlike the parent's and the bystanders' end with the token."""
    return [
        process.command
        for process in mentioning(token)
        if process.command.endswith(token) and "SupervisedProcess" not in process.command
    ]


def test_the_server_dies_with_a_supervisor_that_is_killed(start: Start, token: str):
    process = start(SLEEPER)
    (server,) = mentioning(token)
    os.kill(server.parent, signal.SIGKILL)
    assert process.wait(10)
    assert "lost its supervisor" in process.describe_end()
    wait_until(lambda: not mentioning(token), within=10)

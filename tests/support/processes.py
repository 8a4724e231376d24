"""Processes under test: starting them, waiting for what they do, finding what they leave behind (Linux)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

ROOT = Path(__file__).resolve().parents[2]
"""The project's checkout."""

_POLL_SECONDS = 0.02
_GRACE_SECONDS = 5.0
_ZOMBIE = "Z"
Found = TypeVar("Found")


def wait_until(condition: Callable[[], Found], *, within: float, what: str = "") -> Found:
    """Polls until the condition is true and returns its value; AssertionError after ``within`` seconds."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within:g} s: {what or getattr(condition, '__name__', condition)}")
        time.sleep(_POLL_SECONDS)


def free_port() -> int:
    """A loopback port that nothing listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Whether nothing listens on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@dataclass(frozen=True)
class Process:
    """A living process, as /proc tells of it."""

    pid: int
    parent: int
    group: int
    session: int
    command: str


def living() -> Iterator[Process]:
    """Every process that is no zombie, this one included."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            command = (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
        state, parent, group, session = stat.rpartition(")")[2].split()[:4]
        if state != _ZOMBIE:
            words = command.decode(errors="replace").replace("\0", " ").strip()
            yield Process(int(entry.name), int(parent), int(group), int(session), words)


def mentioning(token: str) -> list[Process]:
    """Living processes, but this one, whose command line holds a token that only the test under way uses."""
    return [process for process in living() if token in process.command and process.pid != os.getpid()]


def in_session(session: int) -> list[Process]:
    """Living processes of a session."""
    return [process for process in living() if process.session == session]


def in_group(group: int) -> list[Process]:
    """Living processes of a process group."""
    return [process for process in living() if process.group == group]


def descendants(pid: int) -> list[Process]:
    """Living children of a process, their children, and so on."""
    everyone = list(living())
    found: list[Process] = []
    parents = {pid}
    while parents:
        children = [process for process in everyone if process.parent in parents]
        found += children
        parents = {process.pid for process in children}
    return found


def end_group(group: int, *, grace: float = _GRACE_SECONDS) -> None:
    """Ends a process group: SIGTERM, ``grace`` seconds, SIGKILL; returns when none of it lives."""
    for sent, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, _GRACE_SECONDS)):
        try:
            os.killpg(group, sent)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + patience
        while in_group(group) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


class Running:
    """A program in a session of its own, its output in a file."""

    def __init__(self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self._file: IO[bytes] = log.open("wb")
        self.process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        """What it has printed so far, both streams."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self, within: float) -> int:
        """Its exit status; AssertionError with its last output after ``within`` seconds."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within:g} s; it printed:\n{self.output[-4000:]}") from None

    def wait_for_output(self, text: str, within: float) -> None:
        """Waits until it has printed a text; AssertionError when it ends or time passes before that."""

        def said_or_ended() -> bool:
            return text in self.output or self.process.poll() is not None

        wait_until(said_or_ended, within=within, what=f"output {text!r}")
        assert text in self.output, f"ended with {self.process.returncode} before it printed {text!r}:\n{self.output}"

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to it alone, as ``kill`` does."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Sends SIGINT to its whole process group, as a terminal's Ctrl-C does."""
        os.killpg(self.pid, signal.SIGINT)

    def end(self, grace: float = _GRACE_SECONDS) -> None:
        """Ends it and whatever is left of its process group, with SIGKILL after ``grace`` seconds."""
        end_group(self.pid, grace=grace)
        self.process.wait()
        self._file.close()


def outer_pytest_removed() -> dict[str, str]:
    """The environment without the variables by which a pytest inside pytest would be changed."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_CORE_"))}


@contextmanager
def running(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
    grace: float = _GRACE_SECONDS,
) -> Iterator[Running]:
    """Starts a program and ends its process group at the end.

    ``environment`` is laid over this process's own, without what would tell a pytest that it runs inside another.
    """
    program = Running(
        command, cwd=cwd, environment={**outer_pytest_removed(), **(environment or {})}, log=log or cwd / "output.log"
    )
    try:
        yield program
    finally:
        program.end(grace)


def pytest_command(*arguments: str) -> list[str]:
    """A pytest of its own on the same interpreter, without what would carry over from this run."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]


@dataclass(frozen=True)
class Completed:
    """A program that has ended: its exit status and what it printed, both streams."""

    code: int
    output: str


def run_pytest(
    *arguments: str, cwd: Path, within: float = 120.0, environment: Mapping[str, str] | None = None
) -> Completed:
    """Runs pytest as a program in ``cwd`` until it ends.

    Raises AssertionError after ``within`` seconds, having ended what it started.
    """
    program = Running(
        pytest_command(*arguments),
        cwd=cwd,
        environment={**outer_pytest_removed(), **(environment or {})},
        log=cwd / "pytest-output.log",
    )
    try:
        code = program.wait(within)
        return Completed(code, program.output)
    finally:
        program.end()

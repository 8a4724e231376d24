"""Runs one server for pytest and never outlives it, nor lets the server do so.

pytest starts this file as a program of its own, in a session of its own, and keeps the writing end of its standard
input. The first line there is the order (JSON: ``command``, ``environment``, ``stop_command``, ``grace``); the end of
that input, which the kernel brings about however pytest ends, means stop. Standard output carries a JSON object a line:
``{"event": "started", "pid": ...}``, ``{"event": "failed", "error": ...}``, ``{"event": "exited", "status": ...}`` (the
exit status, negative for a signal), ``{"event": "stop_command", "status": ...}`` and at last ``{"event": "gone",
"left": [...]}`` (processes that could not be ended).
The server writes to this process's standard error, which pytest has pointed to the log.

A stop is the stop command if there is one, SIGTERM to the server's process group, ``grace`` seconds, SIGKILL. On Linux
this process is the reaper of orphaned descendants, so that a server's daemons, in whatever session, are found and ended
too, and everything is gone once no child is left to wait for. Elsewhere only the process group is ended.

Standard library only, and few modules of it: it starts with each server.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ON_LINUX = sys.platform.startswith("linux")
_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGHUP})
STOP_COMMAND_SECONDS = 60.0
_PARENT_CHECK_SECONDS = 1.0
# How long killed processes are waited for: one in an uninterruptible sleep (a hung driver) never goes.
KILL_SECONDS = 10.0


class Supervisor:
    """One server, from its order to its end."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._command: list[str] = order["command"]
        self._environment: dict[str, str] = order["environment"]
        self._stop_command: list[str] = order["stop_command"]
        self._grace: float = order["grace"]
        self._parent = os.getppid()
        self._leader = 0
        self._leader_ended = False

    def run(self) -> None:
        """Starts the server, and returns when it and all that it started are gone."""
        wakeup = _wake_up_on_signals()
        prctl = _prctl()
        if prctl is not None:
            prctl(_PR_SET_CHILD_SUBREAPER, 1)
        try:
            server = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=2,
                stderr=2,
                start_new_session=True,
                # Should this process be killed, the server at least dies with it.
                preexec_fn=(lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)) if prctl is not None else None,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            _say(event="failed", error=f"{self._command[0]}: {reason or error}")
            return
        self._leader = server.pid
        _say(event="started", pid=server.pid)
        while not self._leader_ended and not self._told_to_stop(wakeup):
            self._reap()
        self._end_all()
        _say(event="gone", left=_descendants(os.getpid()))

    def _told_to_stop(self, wakeup: int) -> bool:
        """Waits for something to happen; whether it means stop."""
        readable, _, _ = select.select([0, wakeup], [], [], _PARENT_CHECK_SECONDS)
        if wakeup in readable and not _STOP_SIGNALS.isdisjoint(os.read(wakeup, 64)):
            return True
        if 0 in readable and not os.read(0, 64):
            return True
        # A process that pytest forked without exec may still hold the pipe's other end.
        return os.getppid() != self._parent

    def _reap(self) -> bool:
        """Takes in all that have ended; whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._leader:
                self._leader_ended = True
                _say(event="exited", status=os.waitstatus_to_exitcode(status))

    def _end_all(self) -> None:
        if self._stop_command:
            _say(event="stop_command", status=_run_bounded(self._stop_command, self._environment))
        if self._gone_within(0):
            return
        self._signal(signal.SIGTERM)
        if not self._gone_within(self._grace):
            deadline = time.monotonic() + KILL_SECONDS
            # Again and again: what is killed may just have forked.
            while time.monotonic() < deadline:
                self._signal(signal.SIGKILL)
                if self._gone_within(0.1):
                    break

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._reap() or self._group_lives():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            # macOS answers so for a group of which only zombies are left.
            return False
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self._leader:
                    os.kill(pid, number)


def _descendants(root: int) -> list[int]:
    """All processes below ``root`` in the process tree, from /proc; empty where there is none."""
    children: dict[int, list[int]] = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name in parentheses may hold anything; after the last one come the state and the parent.
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def _run_bounded(command: list[str], environment: dict[str, str]) -> int | None:
    """The stop command's exit status; None where it could not be run or took too long."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            timeout=STOP_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode


def _prctl() -> Any:
    """Linux's prctl(2) as a function of two integers; None elsewhere."""
    if not _ON_LINUX:
        return None
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):
        return None


def _wake_up_on_signals() -> int:
    """A descriptor that becomes readable with the number of each signal that comes."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    # Ctrl-C is pytest's to handle, and it stops its servers itself. A handler, since the server would inherit SIG_IGN.
    for number in (signal.SIGCHLD, signal.SIGINT, *_STOP_SIGNALS):
        signal.signal(number, lambda *_: None)
    return reading


def _say(**event: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(event).encode() + b"\n")


def main() -> None:
    """Reads the order, the only line that ever comes in, and runs it."""
    order = b""
    while not order.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            return
        order += part
    Supervisor(json.loads(order)).run()


if __name__ == "__main__":
    main()

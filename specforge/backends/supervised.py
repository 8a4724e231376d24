"""pytest's side of the supervisor: starts it, hears what it reports, tells it to stop."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from specforge.backends import supervisor
from specforge.errors import ServerError

GRACE_SECONDS = 5.0


class SupervisedProcess:
    """A command that runs under a supervisor, and so ends with this process at the latest.

    The supervisor is started as a file in isolated mode: it imports nothing but the standard library, whatever the
    environment's ``PYTHONPATH`` or site hooks would add. Methods may be called from any thread.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: IO[bytes],
        stop_command: Sequence[str] = (),
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.pid: int | None = None
        self.exit_status: int | None = None
        self.failure: str | None = None
        self.stop_command_status: int | None = None
        self.left: tuple[int, ...] = ()
        self._stop_command = tuple(stop_command)
        self._grace = grace
        self._lock = threading.Lock()
        self._heard = b""
        self._silent = False
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # a terminal's Ctrl-C or hang-up is not for it
        )
        order = {
            "command": list(command),
            "environment": dict(environment),
            "stop_command": list(stop_command),
            "grace": grace,
        }
        assert self._supervisor.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended at once, which the silence will tell
            self._supervisor.stdin.write(json.dumps(order).encode() + b"\n")
            self._supervisor.stdin.flush()

    def wait(self, seconds: float) -> bool:
        """Waits at most ``seconds`` for the command to end; whether it has, or could not be started at all."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while not self._ended and self._hear(deadline - time.monotonic()):
                pass
            return self._ended

    @property
    def ended(self) -> bool:
        """Whether the command has ended, could not be started, or has lost its supervisor."""
        return self.wait(0)

    def describe_end(self) -> str:
        """How the command ended, for a message."""
        if self.failure is not None:
            return f"could not be started: {self.failure}"
        if self.exit_status is None:
            return "lost its supervisor, which was killed from outside"
        if self.exit_status < 0:
            return f"was ended by signal {-self.exit_status}"
        return f"exited with {self.exit_status}"

    def stop(self) -> None:
        """Ends the command with all that it started, and waits until that is done. Stopping again does nothing.

        Raises:
            ServerError: processes are left, which even SIGKILL did not end.
        """
        assert self._supervisor.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._supervisor.stdin.close()
        if self._supervisor.poll() is None:
            # The closed pipe would do, had not this process been forked since by someone who kept its descriptors.
            self._supervisor.terminate()
        patience = self._grace + supervisor.KILL_SECONDS + GRACE_SECONDS
        if self._stop_command:
            patience += supervisor.STOP_COMMAND_SECONDS
        deadline = time.monotonic() + patience
        with self._lock:
            while self._hear(deadline - time.monotonic()):
                pass
        try:
            self._supervisor.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        if self.left:
            raise ServerError(f"the server's processes {list(self.left)} could not be ended, not even by SIGKILL")

    @property
    def _ended(self) -> bool:
        return self._silent or self.failure is not None or self.exit_status is not None

    def _hear(self, seconds: float) -> bool:
        """Takes in what the supervisor reports within ``seconds``; False when nothing (more) came."""
        assert self._supervisor.stdout is not None
        if self._silent or self._supervisor.stdout.closed:
            return False
        descriptor = self._supervisor.stdout.fileno()
        if not select.select([descriptor], [], [], max(0.0, seconds))[0]:
            return False
        part = os.read(descriptor, 65536)
        if not part:
            self._silent = True
            self._supervisor.stdout.close()
            return False
        *lines, self._heard = (self._heard + part).split(b"\n")
        for line in lines:
            self._note(json.loads(line))
        return True

    def _note(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "started":
            self.pid = event["pid"]
        elif kind == "failed":
            self.failure = event["error"]
        elif kind == "exited":
            self.exit_status = event["status"]
        elif kind == "stop_command":
            self.stop_command_status = event["status"]
        elif kind == "gone":
            self.left = tuple(event["left"])

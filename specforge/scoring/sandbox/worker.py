"""One running sandbox, from the host's side."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict
from types import TracebackType
from typing import Any

from specforge.scoring.sandbox.guest.plan import Limits
from specforge.scoring.sandbox.guest.wire import read_frame, write_frame
from specforge.scoring.sandbox.launch import launch
from specforge.scoring.sandbox.settings import SandboxSettings

_START_S = 30.0
_START_CONTAINER_S = 300.0  # the image may have to be fetched
_GRACE_S = 10.0
"""Seconds beyond its limits after which a sandbox that gives no verdict is given up."""


class SandboxFailed(Exception):
    """A sandbox can't be started, or died. Its text says why."""


class Sandbox:
    """A sandbox of one kind: start it, give it jobs one after the other, close it.

    Start and close it in the same thread: the kernel ends it with the thread that started it.

    Attributes:
        powers: what the guest found to be possible, once it is started.
    """

    def __init__(self, kind: str, settings: SandboxSettings) -> None:
        self.kind = kind
        self.settings = settings
        self.powers: tuple[str, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._interrupted = False

    def __enter__(self) -> Sandbox:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def limits(self) -> Limits:
        """The user's limits, as the guest wants them."""
        settings = self.settings
        return Limits(
            wall_s=settings.wall_s,
            memory=settings.memory_mb << 20,
            processes=settings.processes,
            output=settings.output_mb << 20,
            scratch=settings.scratch_mb << 20,
        )

    def start(self) -> None:
        """Starts the sandbox and waits until it can take a job.

        Raises:
            SandboxFailed: it can't be made here.
        """
        try:
            self._folder = tempfile.mkdtemp(prefix="specforge-sandbox-")
            # a program that runs as another user must reach its scratch folder, and see nothing on the way
            os.chmod(self._folder, 0o711)
            how = launch(self.kind, self.settings, self._folder, threading.get_native_id())
            self._process = subprocess.Popen(
                how.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=how.environment,
                cwd="/",
                start_new_session=True,
                umask=0o022,
                bufsize=0,
            )
            container = self.kind in ("docker", "podman")
            hello = self._receive(_START_CONTAINER_S if container else _START_S)
        except (OSError, SandboxFailed) as error:
            self.close()
            raise SandboxFailed(f"{self.kind}: {error}") from None
        if "error" in hello:
            self.close()
            raise SandboxFailed(f"{self.kind}: {hello['error']}")
        self.powers = tuple(hello["powers"])

    def run(self, job: dict[str, Any], programs: int = 1) -> dict[str, Any]:
        """Runs one job; its verdict: ``passed``, ``checks``, ``reason``, and what else the way of judging says.

        Args:
            job: the job, without its limits.
            programs: how many programs it runs one after the other, each with the whole time limit.

        Raises:
            SandboxFailed: the sandbox gave no verdict; it is closed then.
        """
        limits = self.limits()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin.fileno(), json.dumps({**job, "limits": asdict(limits)}).encode())
            verdict = self._receive(limits.wall_s * programs + _GRACE_S)
            if verdict.get("fault"):
                raise SandboxFailed(str(verdict["reason"]))
        except (OSError, ValueError, SandboxFailed) as error:  # ValueError: interrupt closed the pipe
            self.close()
            raise SandboxFailed(str(error)) from None
        return verdict

    def interrupt(self) -> None:
        """Ends the sandbox from another thread: :meth:`start` or :meth:`run`, under way or to come, raise there."""
        self._interrupted = True
        process = self._process
        if process is not None and process.stdin is not None:
            # the guest ends its programs when the pipe closes; killed, it could not
            process.stdin.close()

    def close(self) -> None:
        """Ends the sandbox and everything in it."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
            process.stderr.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    def _receive(self, within_s: float) -> dict[str, Any]:
        process = self._process
        if self._interrupted:
            raise SandboxFailed("interrupted")
        assert process is not None
        assert process.stdout is not None
        fd = process.stdout.fileno()
        deadline = time.monotonic() + within_s

        def read(size: int) -> bytes:
            if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise SandboxFailed(f"no answer within {within_s:g} s")
            return os.read(fd, size)

        frame = read_frame(read)
        if frame is None:
            raise SandboxFailed(f"the sandbox ended: {self._last_words()}")
        return dict(json.loads(frame))

    def _last_words(self) -> str:
        process = self._process
        assert process is not None
        assert process.stderr is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        fd = process.stderr.fileno()
        said = os.read(fd, 1 << 14) if select.select([fd], [], [], 0)[0] else b""
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else f"exit status {process.poll()}, it said nothing"

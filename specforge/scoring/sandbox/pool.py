"""Many sandboxes at work on one list of jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.sandbox.worker import Sandbox, SandboxFailed

_TRIES = 2
"""How often a job is given to a sandbox: once more where the first one died, which may be another's fault."""

_CLOSE_S = 20.0
"""Seconds that an interrupted run waits for a sandbox to end."""


def run_jobs(
    kind: str, settings: SandboxSettings, jobs: Sequence[dict[str, Any]], done: Callable[[], None] | None = None
) -> list[dict[str, Any]]:
    """Runs every job in sandboxes of ``kind``, ``settings.worker_count()`` at a time; their verdicts, in order.

    A job during which its sandbox died twice has the verdict ``{"passed": False, "reason": ...}``.

    Args:
        kind: the kind of sandbox, as :func:`~specforge.scoring.sandbox.probe.detect` found it.
        settings: the user's.
        jobs: the jobs, without limits.
        done: called after each job, from any thread.

    Raises:
        SandboxFailed: a sandbox can't be started any more, so that what is left can't be judged.
    """
    return _Crew(kind, settings, jobs, done).run()


class _Crew:
    """Threads that share one queue of jobs, each with a sandbox of its own."""

    def __init__(
        self, kind: str, settings: SandboxSettings, jobs: Sequence[dict[str, Any]], done: Callable[[], None] | None
    ) -> None:
        self._kind = kind
        self._settings = settings
        self._jobs = jobs
        self._done = done
        self._waiting: SimpleQueue[int] = SimpleQueue()
        self._verdicts: list[dict[str, Any]] = [{} for _ in jobs]
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._at_work: set[Sandbox] = set()
        # not Thread.join: a join that Ctrl-C interrupts takes the thread for ended from then on
        self._finished = threading.Semaphore(0)

    def run(self) -> list[dict[str, Any]]:
        """Runs all jobs and returns their verdicts."""
        for number in range(len(self._jobs)):
            self._waiting.put(number)
        running = 0
        try:
            for number in range(min(self._settings.worker_count(), len(self._jobs))):
                running += 1
                threading.Thread(target=self._work, name=f"sandbox-{number}", daemon=True).start()
            while running:
                self._finished.acquire()
                running -= 1
        except BaseException:  # Ctrl-C, or a test runner's own time limit: leave nothing behind
            self._stopped.set()
            for sandbox in list(self._at_work):
                sandbox.interrupt()
            for _ in range(running):
                self._finished.acquire(timeout=_CLOSE_S)
            raise
        if self._failure is not None:
            raise self._failure
        return self._verdicts

    def _work(self) -> None:
        sandbox: Sandbox | None = None
        try:
            while not self._stopped.is_set():
                number = self._waiting.get_nowait()
                sandbox = self._judge(number, sandbox)
                if self._done is not None:
                    self._done()
        except Empty:
            return
        except BaseException as error:
            self._failure = error
            self._stopped.set()
        finally:
            if sandbox is not None:
                sandbox.close()
            self._finished.release()

    def _judge(self, number: int, sandbox: Sandbox | None) -> Sandbox | None:
        """Gives one job to ``sandbox`` or a new one; the sandbox that is there for the next."""
        job = self._jobs[number]
        for _ in range(_TRIES):
            if self._stopped.is_set():
                return sandbox
            sandbox = sandbox or self._started()
            try:
                self._verdicts[number] = sandbox.run(job, len(job.get("tests") or (1,)))
                return sandbox
            except SandboxFailed as error:
                self._at_work.discard(sandbox)
                sandbox = None
                self._verdicts[number] = {"passed": False, "checks": 0, "reason": f"the sandbox failed: {error}"}
        return sandbox

    def _started(self) -> Sandbox:
        try:
            return self._start()
        except SandboxFailed:
            return self._start()  # a busy machine may refuse a process once

    def _start(self) -> Sandbox:
        sandbox = Sandbox(self._kind, self._settings)
        self._at_work.add(sandbox)
        # looked at after it is among those at work: a stop either finds it there or is seen here
        if self._stopped.is_set():
            raise SandboxFailed("interrupted")
        try:
            sandbox.start()
        except SandboxFailed:
            self._at_work.discard(sandbox)
            raise
        return sandbox

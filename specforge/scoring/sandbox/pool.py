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


def run_jobs(
    kind: str, settings: SandboxSettings, jobs: Sequence[dict[str, Any]], done: Callable[[], None] | None = None
) -> list[dict[str, Any]]:
    """Runs every job in sandboxes of ``kind``, ``settings.worker_count()`` at a time; their verdicts, in order.

    A job whose sandbox died twice has the verdict ``{"passed": False, "reason": ...}``.

    Args:
        kind: the kind of sandbox, as :func:`~specforge.scoring.sandbox.probe.detect` found it.
        settings: the user's.
        jobs: the jobs, without limits.
        done: called after each job, from any thread.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)
    verdicts: list[dict[str, Any]] = [{} for _ in jobs]

    stopped = threading.Event()
    # not Thread.join: a join that Ctrl-C interrupts takes the thread for ended from then on
    finished = threading.Semaphore(0)
    at_work: set[Sandbox] = set()

    def work() -> None:
        sandbox: Sandbox | None = None
        try:
            while not stopped.is_set():
                number = waiting.get_nowait()
                for _ in range(_TRIES):
                    if stopped.is_set():
                        return
                    try:
                        if sandbox is None:
                            sandbox = Sandbox(kind, settings)
                            at_work.add(sandbox)
                            sandbox.start()
                        verdicts[number] = sandbox.run(jobs[number], len(jobs[number].get("tests") or (1,)))
                        break
                    except SandboxFailed as error:
                        sandbox = None
                        verdicts[number] = {"passed": False, "checks": 0, "reason": f"the sandbox failed: {error}"}
                if done is not None:
                    done()
        except Empty:
            return
        finally:
            if sandbox is not None:
                sandbox.close()
            finished.release()

    threads = [
        threading.Thread(target=work, name=f"sandbox-{number}", daemon=True)
        for number in range(min(settings.worker_count(), len(jobs)))
    ]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        for _ in threads:
            finished.acquire()
            running -= 1
    except BaseException:  # Ctrl-C, or a test runner's own time limit: leave nothing behind
        stopped.set()
        for sandbox in list(at_work):
            sandbox.interrupt()
        for _ in range(running):
            finished.acquire()
        raise
    return verdicts

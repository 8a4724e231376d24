"""Comparisons in worker processes: started when needed, each comparison limited in time, ended when done."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import specforge

START_S = 120.0
"""How long a worker may take to import its libraries; a busy machine takes seconds."""

Pair = tuple[str, str]


def compare_all(pairs: Sequence[Pair], limit_s: float, workers: int) -> list[bool | None]:
    """Whether the two of each pair are equivalent; None where it took longer than ``limit_s`` or broke the worker."""
    if not pairs:
        return []
    # Threads share one iterator: next() of a list's iterator is atomic.
    waiting = iter(list(enumerate(pairs)))
    verdicts: list[bool | None] = [None] * len(pairs)

    def serve() -> None:
        with contextlib.closing(_Worker(limit_s)) as worker:
            for place, pair in waiting:
                verdicts[place] = worker.compare(pair)

    # A worker costs a second to start, so a few pairs are not worth several.
    count = max(1, min(workers, len(pairs) // 8))
    with ThreadPoolExecutor(count, thread_name_prefix="math") as threads:
        for served in [threads.submit(serve) for _ in range(count)]:
            served.result()
    return verdicts


class _Worker:
    """One worker process; a new one takes its place after it was ended."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def compare(self, pair: Pair) -> bool | None:
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(pair).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            return None
        verdict = self._read_line(process, self._limit_s)
        if not isinstance(verdict, bool):
            self.close()
            return None
        return verdict

    def close(self) -> None:
        """Ends the process and waits for it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        # The package may have been imported from a folder that only this process's path knows.
        home = str(Path(specforge.__file__).parents[1])
        path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-m", "specforge.scoring.math.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._process, self._buffer = process, b""
        if self._read_line(process, START_S) != "ready":
            self.close()
            raise RuntimeError("the math worker did not start: python -m specforge.scoring.math.worker shows why")
        return process

    def _read_line(self, process: subprocess.Popen[bytes], limit_s: float) -> object:
        """The next line's JSON value; None where the time is over or the process has ended."""
        assert process.stdout is not None
        deadline = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return None
                received = os.read(process.stdout.fileno(), 65536)
                if not received:
                    return None
                self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        value: object = json.loads(line)
        return value

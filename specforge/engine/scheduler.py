"""Continuous batching: one thread owns the models and every running request."""

import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from specforge.engine.request import FinishReason, Request
from specforge.engine.runner import Runner


@dataclass(frozen=True)
class Progress:
    """What a step did to a request, handed to its listener on the engine's thread."""

    tokens: list[int]
    """Tokens since the last call, cut where the answer stops."""
    finished: bool


Listener = Callable[[Progress], None]


@dataclass
class _Job:
    request: Request
    listener: Listener
    streams: bool


@dataclass
class Totals:
    """Counts since the last flush, for the server's own account of itself."""

    spec_tokens: int = 0
    verify_steps: int = 0
    decode_seconds: float = 0.0
    decode_tokens: int = 0


@dataclass
class _Flush:
    done: Callable[[bool], None]


@dataclass
class _Abort:
    chosen: Callable[[Request], bool]


@dataclass
class _Close:
    pass


@dataclass
class Load:
    """How busy the engine is, and what it holds."""

    running: int = 0
    waiting: int = 0
    prefix_tokens: int = 0
    totals: Totals = field(default_factory=Totals)


class Scheduler:
    """Runs requests in the order they came, up to `slots` at once; prompts go before decoding, as in SGLang."""

    def __init__(self, runner: Runner, slots: int) -> None:
        self._runner, self._slots = runner, slots
        self._inbox: queue.SimpleQueue[_Job | _Flush | _Abort | _Close] = queue.SimpleQueue()
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._totals = Totals()
        self._closing = False
        self.failure: BaseException | None = None
        """What ended the thread, if it ended by an error."""
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Start the engine's thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread after its current step; running requests are aborted."""
        self._inbox.put(_Close())
        self._thread.join()

    def submit(self, request: Request, listener: Listener, *, streams: bool) -> None:
        """Queue a request. `streams`: call the listener at every step, not at the end alone."""
        self._inbox.put(_Job(request, listener, streams))

    def abort(self, chosen: Callable[[Request], bool]) -> None:
        """End the chosen requests, waiting and running; each listener is told."""
        self._inbox.put(_Abort(chosen))

    def flush(self, done: Callable[[bool], None]) -> None:
        """Empty the caches if nothing runs or waits; `done` is told whether that was so, on the engine's thread."""
        self._inbox.put(_Flush(done))

    @property
    def load(self) -> Load:
        """A glance from another thread."""
        return Load(len(self._running), len(self._waiting), self._runner.prefixes.tokens, self._totals)

    def _run(self) -> None:
        try:
            while not self._closing:
                self._receive(wait=not (self._running or self._waiting))
                self._admit()
                if self._running:
                    self._decode()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._end(lambda _: True, "The engine was stopped.", 503)

    def _receive(self, *, wait: bool) -> None:
        """Take in what other threads sent."""
        while wait or not self._inbox.empty():
            message, wait = self._inbox.get(), False
            if isinstance(message, _Job):
                self._waiting.append(message)
            elif isinstance(message, _Abort):
                self._end(message.chosen, "Aborted", None)
            elif isinstance(message, _Flush):
                message.done(self._flush())
            else:
                self._closing = True

    def _flush(self) -> bool:
        if self._running or self._waiting:
            return False
        self._runner.flush()
        self._totals = Totals()
        return True

    def _admit(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            job = self._waiting.popleft()
            request = job.request
            request.slot = len(self._running)
            request.times.started = perf_counter()
            first = self._runner.prefill(request)
            request.times.first_token = perf_counter()
            self._running.append(job)
            self._commit(job, [first])
            self._drop_finished()

    def _decode(self) -> None:
        started = perf_counter()
        requests = [job.request for job in self._running]
        for job, verdict in zip(self._running, self._runner.advance(requests), strict=True):
            if self._runner.drafter.nodes > 1:
                job.request.spec.record(verdict.correct)
                self._totals.verify_steps += 1
                self._totals.spec_tokens += len(verdict.tokens)
            self._totals.decode_tokens += len(verdict.tokens)
            self._commit(job, verdict.tokens)
        self._drop_finished()
        self._totals.decode_seconds += perf_counter() - started

    def _commit(self, job: _Job, new: list[int]) -> None:
        """Append new tokens up to where the answer stops, and tell the listener."""
        request = job.request
        room = request.limit - request.output_length
        stop = request.stop.check(new, room)
        if stop is not None:
            new = new[: stop.kept]
            detail = {"length": request.limit} if stop.kind == "length" else stop.detail
            request.finish = FinishReason(stop.kind, detail)
            request.times.finished = perf_counter()
        request.tokens.extend(new)
        if request.params.counts_outputs:
            request.output_counts.update(new)
        if job.streams or stop is not None:
            job.listener(Progress(new if job.streams else request.outputs, finished=stop is not None))

    def _drop_finished(self) -> None:
        """Free the slots of finished requests, closing the gaps they leave."""
        for slot in reversed(range(len(self._running))):
            job = self._running[slot]
            if job.request.finish is None:
                continue
            self._runner.release(job.request)
            last = self._running.pop()
            if last is not job:
                self._runner.move(last.request, slot)
                self._running[slot] = last

    def _end(self, chosen: Callable[[Request], bool], message: str, status: int | None) -> None:
        """Abort requests, waiting or running."""
        for job in [job for job in (*self._waiting, *self._running) if chosen(job.request)]:
            waits = job.request.slot < 0
            detail = {
                "message": "Abort in waiting queue" if waits else message,
                "status_code": status,
                "err_type": None,
            }
            job.request.finish = FinishReason("abort", detail)
            job.request.times.finished = perf_counter()
            job.listener(Progress([] if job.streams else job.request.outputs, finished=True))
        self._waiting = deque(job for job in self._waiting if job.request.finish is None)
        self._drop_finished()

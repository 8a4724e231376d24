"""Several client processes that share one load, past what one process carries.

This process flushes, watches the server and keeps the books; the others send. They take prompts from one queue (closed
loop) or every n-th arrival (open loop), so that together they are the one client that was asked for. Each appends its
rows to a file of its own, since appends of several processes to one file are not whole on every file system; the files
become one when the load is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection as Channel
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from specforge.client.endpoint import Endpoint
from specforge.client.measured import MeasuredClient
from specforge.client.wire import Wire
from specforge.errors import ServerError
from specforge.load.blocking import run_blocking
from specforge.load.prepare import Tokenizer, no_tokenizer, server_tokenizer
from specforge.load.rounds import Connection, Load, LocalCrew, measure_rounds
from specforge.load.schedule import ClosedLoop, OpenLoop, Schedule
from specforge.load.selfwatch import SelfWatch
from specforge.load.template import local_tokenizer
from specforge.measurement.collector import Collector, Part
from specforge.measurement.progress import Progress
from specforge.metrics.requests import RoundTimes
from specforge.results.rows import RowWriter

_TICK = 0.25  # s between two reports of a worker's progress
_FAREWELL = 10.0  # s that a worker gets to abort its requests and to hand over what it has
_SHARED = multiprocessing.get_context("spawn")


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a worker needs to know.

    Attributes:
        endpoint, wire, request_timeout: how the server is reached.
        tokenizes: ``server`` or ``local``; None where nobody can.
        model_path: for a local tokenizer.
        load: the load, with this worker's part of its slots and of its schedule.
        rows_path: where this worker's rows go.
    """

    endpoint: Endpoint
    wire: Wire
    request_timeout: float
    tokenizes: str | None
    model_path: str | None
    load: Load
    rows_path: Path

    def tokenizer(self, client: MeasuredClient) -> Tokenizer:
        """The worker's own tokenizer: one can't be handed from process to process."""
        if self.tokenizes == "server":
            return server_tokenizer(client, self.load.sampling.template_kwargs)
        return local_tokenizer(self.model_path) if self.tokenizes == "local" else no_tokenizer


@dataclass(slots=True)
class RoundPart:
    """One worker's part of a round."""

    times: RoundTimes
    failed: int
    measured: Part
    watch: SelfWatch


async def run_shared_load(
    connection: Connection,
    load: Load,
    collector: Collector,
    self_watch: SelfWatch,
    *,
    processes: int,
    rows_path: Path,
    model_path: str | None,
    progress: Progress,
) -> None:
    """As :func:`specforge.load.rounds.run_load`, with the requests sent by several processes.

    Raises:
        ServerError: the server died, hung, or refused to flush, or a client process died. What was measured is in
            the collector.
    """
    count = min(processes, load.concurrency) if isinstance(load.schedule, ClosedLoop) else processes
    places = _SHARED.Value("q", 0)
    tokenizes = "server" if connection.can_tokenize else "local" if connection.tokenizer is not None else None
    shares = [
        Share(
            endpoint=connection.control.endpoint,
            wire=connection.wire,
            request_timeout=connection.request_timeout,
            tokenizes=tokenizes,
            model_path=model_path,
            load=_part_of(load, part, count),
            rows_path=rows_path.with_name(f"{rows_path.name}.{part}"),
        )
        for part in range(count)
    ]
    for share in shares:
        share.rows_path.unlink(missing_ok=True)
    crew = Workers(shares, places, collector, self_watch, progress)
    try:
        await connection.watch.during(measure_rounds(connection, load, collector, crew))
    finally:
        await crew.end()
        _join_rows(rows_path, [share.rows_path for share in shares])


def _part_of(load: Load, part: int, parts: int) -> Load:
    """One process's part of a load: its slots, or its arrivals; every process knows all the prompts."""
    slots = _split(load.concurrency, part, parts)
    before = sum(_split(load.concurrency, earlier, parts) for earlier in range(part))
    turn = before % len(load.warmup) if load.warmup else 0
    warmup = [*load.warmup[turn:], *load.warmup[:turn]]
    schedule: Schedule = ClosedLoop(slots)
    if isinstance(load.schedule, OpenLoop):
        most = load.schedule.max_in_flight
        own = None if most is None else max(1, _split(most, part, parts))
        schedule = replace(load.schedule, part=part, parts=parts, max_in_flight=own)
    return replace(load, warmup=warmup, concurrency=max(1, slots), schedule=schedule)


def _split(total: int, part: int, parts: int) -> int:
    return total // parts + (part < total % parts)


def _join_rows(rows_path: Path, parts: Sequence[Path]) -> None:
    with rows_path.open("ab") as whole:
        for path in parts:
            with contextlib.suppress(FileNotFoundError):
                with path.open("rb") as part:
                    shutil.copyfileobj(part, whole)
                path.unlink()


class Workers:
    """The client processes, as the one crew of a load (:class:`specforge.load.rounds.Crew`)."""

    def __init__(
        self,
        shares: Sequence[Share],
        places: Any,
        collector: Collector,
        self_watch: SelfWatch,
        progress: Progress,
    ) -> None:
        self._places = places
        self._collector = collector
        self._self_watch = self_watch
        self._progress = progress
        self._workers: list[tuple[SpawnProcess, Channel]] = []
        for share in shares:
            ours, theirs = _SHARED.Pipe()
            process = _SHARED.Process(target=_work, args=(theirs, share, places), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))

    async def warm_up(self, batch: int) -> None:
        """See :class:`specforge.load.rounds.Crew`."""
        await self._all(("warm_up", batch))

    async def round(self, round_index: int, attempt: int) -> tuple[RoundTimes, int]:
        """See :class:`specforge.load.rounds.Crew`."""
        self._places.value = 0
        parts = await self._all(("round", round_index, attempt))
        self._self_watch.absorb([part.watch for part in parts])
        times = [part.times for part in parts if len(part.measured.prompts)] or [part.times for part in parts]
        whole = RoundTimes(
            min(one.started_at for one in times),
            max(one.ended_at for one in times),
            all(one.usable for one in times),
        )
        return whole, sum(part.failed for part in parts)

    async def end(self) -> None:
        """Ends the processes; what they had measured of a round that was cut short is kept."""
        for _, channel in self._workers:
            _send(channel, ("end",))
        deadline = time.monotonic() + _FAREWELL
        for process, channel in self._workers:
            await asyncio.to_thread(self._farewell, channel, deadline)
            await asyncio.to_thread(process.join, max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            channel.close()

    def _farewell(self, channel: Channel, deadline: float) -> None:
        with contextlib.suppress(EOFError, OSError):
            while channel.poll(max(0.0, deadline - time.monotonic())):
                self._keep(channel.recv())

    def _keep(self, message: tuple[Any, ...]) -> None:
        """Takes what was measured out of a message that has some."""
        kind, content = message
        if kind == "left":
            self._collector.absorb(content)
        elif kind == "over" and content is not None:
            self._collector.absorb(content.measured)

    async def _all(self, command: tuple[Any, ...]) -> list[Any]:
        """Gives every worker a command and waits for all answers."""
        for _, channel in self._workers:
            _send(channel, command)
        return list(await asyncio.gather(*(self._answer(at) for at in range(len(self._workers)))))

    async def _answer(self, at: int) -> Any:
        async for kind, content in _messages(self._workers[at][1]):
            self._keep((kind, content))
            if kind == "over":
                return content
            if kind == "ticks":
                for output_tokens, verify_steps in content:
                    self._progress.advance(output_tokens, verify_steps)
            elif kind == "broken":
                raise ServerError(f"client process {at} can't go on: {content}")
        raise ServerError(f"client process {at} died (it was none of the server's)")


def _send(channel: Channel, message: Any) -> None:
    with contextlib.suppress(OSError):  # it is gone, which reading from it tells
        channel.send(message)


async def _messages(channel: Channel) -> AsyncIterator[Any]:
    """Whatever comes through a channel, until its other end is closed."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(channel.fileno(), readable.set)
    try:
        while True:
            await readable.wait()
            readable.clear()
            while channel.poll():
                yield channel.recv()
    except (EOFError, OSError):
        return
    finally:
        loop.remove_reader(channel.fileno())


class _Ticks:
    """Reports progress to the process that shows it, a few times a second."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pending: list[tuple[int, int | None]] = []
        self._last = time.monotonic()

    def advance(self, output_tokens: int, verify_steps: int | None) -> None:
        self._pending.append((output_tokens, verify_steps))
        if time.monotonic() - self._last >= _TICK:
            _send(self._channel, ("ticks", self._pending))
            self._pending, self._last = [], time.monotonic()

    def restart(self, done: int) -> None:
        pass

    def scored(self, accuracy: float | None) -> None:
        pass

    def close(self) -> None:
        pass


def _work(channel: Channel, share: Share, places: Any) -> None:
    """A worker's life: commands until the channel closes, as it does when the other process dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the other process decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    rows = RowWriter(share.rows_path)
    try:
        run_blocking(lambda: _obey(channel, share, places, rows))
    finally:
        rows.close()


async def _obey(channel: Channel, share: Share, places: Any, rows: RowWriter) -> None:
    load = share.load
    if isinstance(load.schedule, ClosedLoop):
        load = replace(load, schedule=replace(load.schedule, next_place=_taker(places)))
    client = MeasuredClient(share.endpoint, share.wire, share.request_timeout)
    collector = Collector(rows, _Ticks(channel))
    running: asyncio.Task[None] | None = None
    tokenize = share.tokenizer(client)

    async def do(command: tuple[Any, ...]) -> RoundPart | None:
        watch = SelfWatch()
        crew = LocalCrew(client, load, tokenize, collector, watch)
        if command[0] == "warm_up":
            await crew.warm_up(command[1])
            return None
        times, failed = await crew.round(command[1], command[2])
        return RoundPart(times, failed, collector.take(), watch)

    async def answer(command: tuple[Any, ...]) -> None:
        try:
            _send(channel, ("over", await do(command)))
        except Exception as error:  # whatever it is, the other process must not wait for an answer
            _send(channel, ("broken", f"{type(error).__name__}: {error}"))

    try:
        async for command in _messages(channel):
            if command[0] == "end":
                break
            running = asyncio.ensure_future(answer(command))
    finally:
        if running is not None:
            running.cancel()
            await asyncio.wait({running})
        await client.close()
        _send(channel, ("left", collector.take()))


def _taker(places: Any) -> Callable[[], int]:
    """Gives each place of the shared queue once, to whichever process comes first."""

    def take() -> int:
        with places.get_lock():
            place = int(places.value)
            places.value = place + 1
        return place

    return take

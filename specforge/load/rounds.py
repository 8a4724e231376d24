"""The measured rounds of a cell: warm-up, flush, window, and once again where a request failed or was retried."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from specforge.client.control import ControlClient
from specforge.client.measured import MeasuredClient
from specforge.client.sampling import Sampling
from specforge.client.wire import Wire
from specforge.load.conversation import Conversations, Outcome
from specforge.load.prepare import Limits, PreparedPrompt, Tokenizer, no_tokenizer, server_tokenizer
from specforge.load.schedule import ClosedLoop, Schedule
from specforge.load.selfwatch import SelfWatch
from specforge.load.watch import Watch
from specforge.metrics.requests import RoundTimes

WARMUP_TOKENS = 256


class Sink(Protocol):
    """Takes what is measured, while it is measured."""

    def outcome(self, outcome: Outcome, attempt: int) -> None:
        """One prompt of a measured round has ended; called inside the window, so it must be quick."""
        ...

    def round_over(self, round_index: int, times: RoundTimes) -> None:
        """A round has ended and counts."""
        ...

    def round_again(self, round_index: int) -> None:
        """A round that a failed or retried request spoilt is about to be measured again; forget it."""
        ...


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of a server in one cell, and how.

    Attributes:
        prompts: the measured prompts.
        warmup: prompts for the warm-up, outside the measured ones where there are enough.
        schedule: when requests are sent.
        concurrency: size of a warm-up batch.
        warmup_batches: batches before the first round (two for the first cell after a launch: kernels compile).
        rounds: measured rounds.
        sampling, limits: what each request states.
        flush: whether the server's cache is flushed before each round.
        kept_rounds: rounds that were measured before, and are not again.
        first_attempt: the number of a round's first measurement; rows of lower ones are there already.
    """

    prompts: Sequence[PreparedPrompt]
    warmup: Sequence[PreparedPrompt]
    schedule: Schedule
    concurrency: int
    warmup_batches: int
    rounds: int
    sampling: Sampling
    limits: Limits
    flush: bool = True
    kept_rounds: Collection[int] = ()
    first_attempt: int = 0


@dataclass(frozen=True, slots=True)
class Connection:
    """How the server is reached while requests run.

    Attributes:
        control: for flushes.
        wire: how the measured requests are asked.
        request_timeout: limit for one request, s.
        watch: looks after the server meanwhile.
        can_tokenize: whether later turns can be tokenized by the server.
        tokenizer: a local tokenizer for servers that can't; None where none is needed.
    """

    control: ControlClient
    wire: Wire
    request_timeout: float
    watch: Watch
    can_tokenize: bool = True
    tokenizer: Tokenizer | None = None

    def tokenizer_over(self, client: MeasuredClient, sampling: Sampling) -> Tokenizer:
        """Who gives token ids: the server's own route, the local template, or nobody."""
        if self.can_tokenize:
            return server_tokenizer(client, sampling.template_kwargs)
        return self.tokenizer or no_tokenizer


class Crew(Protocol):
    """Who sends the requests: this process, or several."""

    async def warm_up(self, batch: int) -> None:
        """Sends one batch that is not measured."""
        ...

    async def round(self, round_index: int, attempt: int) -> tuple[RoundTimes, int]:
        """Measures one round: its window, and how many requests failed."""
        ...


async def run_load(connection: Connection, load: Load, sink: Sink, self_watch: SelfWatch) -> None:
    """Warms up, then measures every round; rows go to ``sink`` as they land.

    Raises:
        ServerError: the server died, hung, or refused to flush. What was measured is in the sink.
    """
    client = MeasuredClient(connection.control.endpoint, connection.wire, connection.request_timeout)
    try:
        tokenize = connection.tokenizer_over(client, load.sampling)
        crew = LocalCrew(client, load, tokenize, sink, self_watch, connection.watch.check_alive)
        await connection.watch.during(measure_rounds(connection, load, sink, crew))
    finally:
        await client.close()


async def measure_rounds(connection: Connection, load: Load, sink: Sink, crew: Crew) -> None:
    """Warms up, then measures every round, once again where a failed or retried request spoilt it.

    Raises:
        ServerError: the server refused to flush.
    """
    wanted = [round_index for round_index in range(load.rounds) if round_index not in load.kept_rounds]
    for batch in range(load.warmup_batches if wanted else 0):
        await crew.warm_up(batch)
    for round_index in wanted:
        for attempt in (load.first_attempt, load.first_attempt + 1):
            if load.flush:
                await asyncio.to_thread(connection.control.flush_cache)
            times, failed = await crew.round(round_index, attempt)
            if times.usable or attempt > load.first_attempt:
                break
            sink.round_again(round_index)
        sink.round_over(round_index, times)
        if failed == len(load.prompts) and failed:
            # Nothing was answered twice over: more rounds would only take longer to say the same.
            break


class LocalCrew:
    """Sends from this process, in the running event loop."""

    def __init__(
        self,
        client: MeasuredClient,
        load: Load,
        tokenize: Tokenizer,
        sink: Sink,
        self_watch: SelfWatch,
        on_connection_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._load = load
        self._sink = sink
        self._self_watch = self_watch
        limits = load.limits
        short = Limits(min(WARMUP_TOKENS, limits.max_new_tokens), limits.max_model_len, limits.largest_tree)
        self._measured = Conversations(client, load.sampling, limits, tokenize, on_connection_lost)
        self._warming = Conversations(client, load.sampling, short, tokenize, on_connection_lost)

    async def warm_up(self, batch: int) -> None:
        """See :class:`Crew`."""
        warmup, size = self._load.warmup, self._load.concurrency
        chosen = [warmup[(batch * size + i) % len(warmup)] for i in range(size)] if warmup else []

        async def ask(prepared: PreparedPrompt) -> None:
            await self._warming.run(prepared, 0)

        await ClosedLoop(size).run(chosen, ask)

    async def round(self, round_index: int, attempt: int) -> tuple[RoundTimes, int]:
        """See :class:`Crew`."""
        first_sent = float("inf")
        last_ended = 0.0
        usable = True
        failed = 0

        async def ask(prepared: PreparedPrompt) -> None:
            nonlocal first_sent, last_ended, usable, failed
            outcome = await self._measured.run(prepared, round_index)
            if outcome.replies:
                first_sent = min(first_sent, outcome.replies[0].sent_at)
                last_ended = max(last_ended, outcome.replies[-1].ended_at)
            if outcome.status == "failed":
                failed += 1
            if outcome.status == "failed" or outcome.retries:
                usable = False
            self._sink.outcome(outcome, attempt)

        began = time.perf_counter()
        with self._self_watch.window():
            await self._load.schedule.run(self._load.prompts, ask)
        if last_ended == 0.0:  # nothing was answered: the window says only how long that took
            return RoundTimes(began, time.perf_counter(), False), failed
        return RoundTimes(first_sent, last_ended, usable), failed

"""A load run against a server, with everything that landed kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specforge.client import ControlClient, Endpoint
from specforge.client.measured import MeasuredClient
from specforge.client.sampling import Sampling
from specforge.client.wire import Route, Wire
from specforge.datasets.model import Prompt
from specforge.load.blocking import run_blocking
from specforge.load.conversation import Outcome
from specforge.load.prepare import Limits, PreparedPrompt, prepare, server_tokenizer
from specforge.load.rounds import Connection, Load, run_load
from specforge.load.schedule import ClosedLoop, Schedule
from specforge.load.selfwatch import SelfWatch
from specforge.load.watch import Watch
from specforge.metrics.requests import RoundTimes


def prompt(number: int, *followups: str) -> Prompt:
    """A prompt that a test can find again in what the server was asked."""
    return Prompt(
        row_id=f"p{number}",
        index=number,
        messages=({"role": "user", "content": f"prompt number {number:03d}"},),
        followups=followups,
    )


def text_of(entry: dict[str, Any]) -> str:
    """The first user message of a logged chat request."""
    return str(entry["request"]["messages"][0]["content"])


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[Outcome, int]] = []
        self.rounds: dict[int, RoundTimes] = {}
        self.again: list[int] = []

    def outcome(self, outcome: Outcome, attempt: int) -> None:
        self.outcomes.append((outcome, attempt))

    def round_over(self, round_index: int, times: RoundTimes) -> None:
        self.rounds[round_index] = times

    def round_again(self, round_index: int) -> None:
        self.again.append(round_index)

    def of(self, row_id: str) -> list[Outcome]:
        """Every outcome of a prompt, in the order in which they landed."""
        return [outcome for outcome, _ in self.outcomes if outcome.prepared.prompt.row_id == row_id]


class Measuring:
    """Loads against one server; ``sink`` has what landed, also when a run raised."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float = 20.0,
        stream: bool = False,
        check_alive: Callable[[], None] = lambda: None,
    ) -> None:
        self.endpoint = Endpoint(base_url)
        self.sink = Kept()
        self._wire = Wire(Route.GENERATE if stream else Route.CHAT, stream)
        self._timeout = timeout
        self._watch = Watch(self.endpoint, check_alive, interval=0.05)
        self._sampling = Sampling.greedy(7)

    def prepared(self, prompts: Sequence[Prompt]) -> list[PreparedPrompt]:
        """The prompts, counted by the server."""

        async def main() -> list[PreparedPrompt]:
            client = MeasuredClient(self.endpoint, self._wire, self._timeout)
            try:
                return await prepare(prompts, server_tokenizer(client, {}))
            finally:
                await client.close()

        return run_blocking(main)

    def run(
        self,
        prompts: Sequence[Prompt],
        *,
        warmup: Sequence[Prompt] = (),
        concurrency: int = 2,
        schedule: Schedule | None = None,
        rounds: int = 1,
        limits: Limits | None = None,
    ) -> Kept:
        """Measures; raises what the load generator raises."""
        load = Load(
            prompts=self.prepared(prompts),
            warmup=self.prepared(warmup),
            schedule=schedule or ClosedLoop(concurrency),
            concurrency=concurrency,
            warmup_batches=1,
            rounds=rounds,
            sampling=self._sampling,
            limits=limits or Limits(2048),
        )
        control = ControlClient(self.endpoint)
        connection = Connection(control, self._wire, self._timeout, self._watch)
        try:
            run_blocking(lambda: run_load(connection, load, self.sink, SelfWatch()))
        finally:
            control.close()
        return self.sink

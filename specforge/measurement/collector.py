"""Takes outcomes as they land: a row on disk, numbers in the columns, a step of the progress bar."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from specforge.client.reply import Reply
from specforge.load.conversation import Outcome
from specforge.measurement.progress import Progress
from specforge.metrics.requests import MISSING, PromptColumns, RoundTimes, TurnColumns, TurnSample
from specforge.results.rows import RowWriter


@dataclass(slots=True)
class Part:
    """What was measured of a cell, or of a part of it that one client process measured.

    Attributes:
        turns, prompts: the numbers.
        counting_attempt: by round, the attempt that counts.
        clamped: by round, answers whose token limit was lowered to what the context holds.
        errors: by round, why the first request failed.
    """

    turns: TurnColumns = field(default_factory=TurnColumns)
    prompts: PromptColumns = field(default_factory=PromptColumns)
    counting_attempt: dict[int, int] = field(default_factory=dict)
    clamped: Counter[int] = field(default_factory=Counter)
    errors: dict[int, str] = field(default_factory=dict)


class Collector:
    """The load generator's sink (:class:`specforge.load.rounds.Sink`)."""

    def __init__(self, rows: RowWriter, progress: Progress) -> None:
        self.rounds: dict[int, RoundTimes] = {}
        self.rounds_repeated = 0
        self._measured = Part()
        self._rows = rows
        self._progress = progress

    @property
    def turns(self) -> TurnColumns:
        """The answered requests of the rounds that count."""
        return self._measured.turns

    @property
    def prompts(self) -> PromptColumns:
        """The prompts of the rounds that count."""
        return self._measured.prompts

    @property
    def counting_attempt(self) -> dict[int, int]:
        """By round, the attempt that counts."""
        return self._measured.counting_attempt

    @property
    def clamped(self) -> int:
        """Answers of the rounds that count whose token limit was lowered to what the context holds."""
        return self._measured.clamped.total()

    @property
    def first_error(self) -> str | None:
        """Why the first request failed, of the rounds that count; None where none did."""
        return next(iter(self._measured.errors.values()), None)

    def outcome(self, outcome: Outcome, attempt: int) -> None:
        """Keeps one prompt of a round."""
        self._rows.write(outcome, attempt)
        self.again(outcome, attempt)

    def again(self, outcome: Outcome, attempt: int) -> None:
        """Keeps one prompt of a round whose row is on disk already."""
        self.counting_attempt[outcome.round_index] = attempt
        timings = [_timings(reply) for reply in outcome.replies]
        for reply, timing in zip(outcome.replies, timings, strict=True):
            self._turn(reply, outcome.round_index, timing)
        self._prompt(outcome, timings)
        self._measured.clamped[outcome.round_index] += outcome.clamped
        if outcome.status == "failed" and outcome.error is not None:
            self._measured.errors.setdefault(outcome.round_index, outcome.error)
        steps = self.prompts.verify_steps[-1]
        self._progress.advance(self.prompts.output_tokens[-1], steps)

    def round_over(self, round_index: int, times: RoundTimes) -> None:
        """Keeps a round's window."""
        self.rounds[round_index] = times

    def round_again(self, round_index: int) -> None:
        """Forgets a round; its rows stay on disk until the review marks them as superseded."""
        self.rounds_repeated += 1
        self.turns.drop_round(round_index)
        self.prompts.drop_round(round_index)
        self._measured.clamped.pop(round_index, None)
        self._measured.errors.pop(round_index, None)
        self._progress.restart(len(self.prompts))

    def take(self) -> Part:
        """Hands over what was measured since the last time, for :meth:`absorb` of another collector."""
        taken, self._measured = self._measured, Part()
        return taken

    def absorb(self, part: Part) -> None:
        """Adds what another process measured."""
        own = self._measured
        own.turns.extend(part.turns)
        own.prompts.extend(part.prompts)
        own.counting_attempt.update(part.counting_attempt)
        own.clamped.update(part.clamped)
        for round_index, error in part.errors.items():
            own.errors.setdefault(round_index, error)

    def _turn(self, reply: Reply, round_index: int, timing: tuple[float, float]) -> None:
        ttft, decode_time = timing
        spec = reply.spec
        self.turns.add(
            TurnSample(
                round_index,
                reply.sent_at,
                reply.ended_at,
                reply.completion_tokens,
                reply.prompt_tokens,
                _number(reply.cached_tokens),
                MISSING if spec is None else float(spec.verify_steps),
                MISSING if spec is None else _number(spec.correct_drafts),
                MISSING if spec is None else _number(spec.proposed_drafts),
                ttft,
                decode_time,
            ),
            None if spec is None else spec.histogram,
        )
        for (before, _), (now, tokens) in zip(reply.chunks, reply.chunks[1:], strict=False):
            self.turns.add_gap(round_index, now - before, tokens)

    def _prompt(self, outcome: Outcome, timings: list[tuple[float, float]]) -> None:
        columns, replies = self.prompts, outcome.replies
        specs = [reply.spec for reply in replies if reply.spec is not None]
        tokens = sum(reply.completion_tokens for reply in replies)
        decoded = tokens - len(replies)
        decode_time = sum(decode for _, decode in timings)
        columns.row_id.append(outcome.prepared.prompt.row_id)
        columns.round.append(outcome.round_index)
        columns.output_tokens.append(tokens)
        columns.verify_steps.append(sum(spec.verify_steps for spec in specs) if specs else None)
        correct = [spec.correct_drafts for spec in specs]
        columns.correct_drafts.append(None if None in correct or not correct else sum(c or 0 for c in correct))
        columns.latency.append(sum(reply.latency for reply in replies) if outcome.status == "ok" else None)
        columns.ttft.append(_known(timings[0][0]) if timings else None)
        columns.tpot.append(_known(decode_time / decoded) if decoded > 0 else None)
        columns.status.append(outcome.status)
        columns.retries.append(outcome.retries)
        # What only the text tells is filled in by the review, after the window.
        columns.correct.append(None)
        columns.truncated.append(any(reply.finish_reason == "length" for reply in replies))
        columns.truncated_thinking.append(False)
        columns.degenerate.append(False)


def _timings(reply: Reply) -> tuple[float, float]:
    """(time to first token, time from it to the end), from the stream, else the server's own; NaN where unknown."""
    if reply.first_token_at is not None:
        return reply.first_token_at - reply.sent_at, reply.ended_at - reply.first_token_at
    if reply.server_ttft is not None:
        total = reply.server_latency if reply.server_latency is not None else reply.latency
        return reply.server_ttft, total - reply.server_ttft
    return MISSING, MISSING


def _number(value: int | None) -> float:
    return MISSING if value is None else float(value)


def _known(value: float) -> float | None:
    return None if value != value else value  # NaN differs from itself

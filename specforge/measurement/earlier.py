"""What an earlier measurement of a cell left in its rows before it was cut off, and how much of that still counts.

A round counts where its rows hold every prompt, no request of it failed or was retried, and it was measured under the
conditions of now (:mod:`specforge.measurement.conditions`). They hold the answers and the times, so accuracy,
acceptance, losslessness and the round's throughput follow from them as they did from the measurement (the gaps between
streamed chunks alone are in no row). The round that was cut counts for nothing: its window was never closed, and asking
only the prompts that it lacks would measure another load. It is measured anew, and its rows stay in the file as
superseded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specforge.client.reply import Reply, SpecCounts
from specforge.datasets.model import Prompt
from specforge.errors import RecordError
from specforge.load.conversation import Outcome
from specforge.load.prepare import PreparedPrompt
from specforge.measurement.collector import Collector
from specforge.measurement.conditions import Conditions, first_valid_attempt
from specforge.metrics.requests import RoundTimes
from specforge.results.rows import Row, drop_cut_line, read_rows, without_images


@dataclass(frozen=True, slots=True)
class Earlier:
    """The rows of an earlier measurement.

    Attributes:
        path: their file.
        attempts: by each round that counts, the attempt whose rows these are.
        next_attempt: above every attempt in the file.
        superseded: rows that count for nothing any more.
        cut_line: whether the last row was not whole, and is gone.
        other_conditions: whether there are rows that another server, or another machine, may have made.
        first_attempt: from which attempt on rows are of the conditions of now.
    """

    path: Path
    attempts: Mapping[int, int]
    next_attempt: int
    superseded: int
    cut_line: bool
    other_conditions: bool
    first_attempt: int

    def restore(self, prompts: Sequence[PreparedPrompt], collector: Collector) -> None:
        """Hands the rounds that count to a collector, as the load generator did."""
        prepared = {one.prompt.row_id: one for one in prompts}
        sent: dict[int, float] = {}
        ended: dict[int, float] = {}
        for row in read_rows(self.path):
            number = row["round"]
            if self.attempts.get(number) != row["attempt"]:
                continue
            outcome = _outcome(row, prepared[row["row_id"]])
            collector.again(outcome, row["attempt"])
            for reply in outcome.replies:
                sent[number] = min(reply.sent_at, sent.get(number, reply.sent_at))
                ended[number] = max(reply.ended_at, ended.get(number, reply.ended_at))
        for number in sorted(sent):
            collector.round_over(number, RoundTimes(sent[number], ended[number], True))

    def as_record(self, rounds: int) -> dict[str, Any]:
        """What the record says of it: rounds are counted from 0, as everywhere in the record."""
        return {
            "rounds_from_rows": sorted(self.attempts),
            "rounds_measured_anew": [number for number in range(rounds) if number not in self.attempts],
            "rows_superseded": self.superseded,
            "last_row_was_cut": self.cut_line,
            "other_conditions": self.other_conditions,
        }


def read_earlier(path: Path, prompts: Sequence[Prompt], rounds: int, conditions: Conditions) -> Earlier | None:
    """Looks at what a cell's rows file holds, and cuts off a last line that is not whole. None where it holds nothing.

    Args:
        path: the cell's rows; there may be no such file.
        prompts: what the cell asks now.
        rounds: measured rounds that it asks for.
        conditions: what it would be measured under.

    Raises:
        RecordError: a line is no row, or the rows are of other prompts.
    """
    try:
        return _read(path, prompts, rounds, conditions) if path.is_file() else None
    except OSError as error:
        raise RecordError(f"--resume: {path}: {error.strerror}") from None
    except RecordError as error:
        raise RecordError(f"--resume: {error}; without that file the cell is measured anew") from None


def _read(path: Path, prompts: Sequence[Prompt], rounds: int, conditions: Conditions) -> Earlier | None:
    cut_line = drop_cut_line(path)
    asked = {prompt.row_id: prompt for prompt in prompts}
    whole, spoilt = Counter[tuple[int, int]](), set[tuple[int, int]]()
    answered = set[tuple[str, int, int]]()
    for row in read_rows(path):
        _check_whole(path, row)
        _check_same(path, row, asked.get(row["row_id"]))
        key = (row["round"], row["attempt"])
        whole[key] += 1
        if row["status"] == "failed" or row["retries"] or not _is_timed(row) or (row["row_id"], *key) in answered:
            spoilt.add(key)
        answered.add((row["row_id"], *key))
    if not whole and not cut_line:
        return None
    following = max((attempt for _, attempt in whole), default=-1) + 1
    first = first_valid_attempt(path, conditions, following)
    attempts = {
        number: attempt
        for (number, attempt), count in whole.items()
        if count == len(asked) and number < rounds and attempt >= first and (number, attempt) not in spoilt
    }
    superseded = whole.total() - len(asked) * len(attempts)
    others = any(attempt < first for _, attempt in whole)
    return Earlier(path, attempts, following, superseded, cut_line, others, first)


def _check_whole(path: Path, row: Row) -> None:
    try:
        numbers = [row["round"], row["attempt"], row["retries"], *(turn["output_tokens"] for turn in row["turns"])]
        _ = row["status"], row["error"], row["clamped"], row["messages"], row["followups"], _replies(row)
        is_whole = all(isinstance(number, int) and number >= 0 for number in numbers)
    except (KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise RecordError(f"{path}: the row of {row['row_id']} is damaged, or of an older version")


def _is_timed(row: Row) -> bool:
    times = ((turn["sent_at"], turn["ended_at"]) for turn in row["turns"])
    return all(isinstance(sent, float) and isinstance(ended, float) and sent <= ended for sent, ended in times)


def _check_same(path: Path, row: Row, prompt: Prompt | None) -> None:
    same = (
        prompt is not None
        and row["messages"] == [without_images(message) for message in prompt.messages]
        and tuple(row["followups"]) == prompt.followups
    )
    if not same:
        raise RecordError(f"{path}: its rows are of other prompts than are asked now (the first is {row['row_id']})")


def _outcome(row: Row, prepared: PreparedPrompt) -> Outcome:
    return Outcome(
        prepared, row["round"], _replies(row), row["status"], row["error"], row["retries"], clamped=row["clamped"]
    )


def _replies(row: Row) -> list[Reply]:
    return [_reply(turn) for turn in row["turns"]]


def _reply(turn: Mapping[str, Any]) -> Reply:
    """The reply that :func:`specforge.results.rows.reply_fields` was given, as far as numbers are made of it."""
    counts = (turn["correct_drafts"], turn["proposed_drafts"], turn["histogram"])
    return Reply(
        finish_reason=turn["finish_reason"],
        completion_tokens=turn["output_tokens"],
        prompt_tokens=turn["prompt_tokens"],
        cached_tokens=turn["cached_tokens"],
        spec=None if turn["verify_steps"] is None else SpecCounts(turn["verify_steps"], *counts),
        sent_at=turn["sent_at"],
        ended_at=turn["ended_at"],
        first_token_at=turn["first_token_at"],
        server_ttft=turn["ttft"] if turn["first_token_at"] is None else None,
        server_latency=turn["server_latency"],
    )

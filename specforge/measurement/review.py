"""After the window: answers are scored, loops and cut thinking are found, and the rows get what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from specforge.datasets.model import Prompt
from specforge.metrics.loops import is_loop
from specforge.results.rows import Row, read_rows, rewrite
from specforge.scoring.score import Answer, Score, Scorer
from specforge.scoring.thinking import split_thinking

_BATCH = 2000  # rows in memory at a time


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the review found in one row.

    Attributes:
        score: the scorer's; None where nothing is scored.
        degenerate: whether a turn's text, thinking included, ends in a loop.
        truncated_thinking: whether a turn was cut while still thinking.
    """

    score: Score | None
    degenerate: bool
    truncated_thinking: bool


Verdicts = dict[tuple[str, int], Verdict]


def review(
    rows_path: Path, prompts: Sequence[Prompt], counting_attempt: Mapping[int, int], scorer: Scorer | None
) -> Verdicts:
    """Scores and inspects every row that counts, and rewrites the file with the scores in it.

    Args:
        rows_path: the cell's rows.
        prompts: the measured prompts, for their references.
        counting_attempt: by round, the attempt that counts; rows of another are marked ``superseded``.
        scorer: None where nothing is scored.

    Returns:
        One verdict for each (row id, round).
    """
    by_id = {prompt.row_id: prompt for prompt in prompts}
    verdicts: Verdicts = {}
    counting = (row for row in read_rows(rows_path) if counting_attempt.get(row["round"]) == row["attempt"])
    for batch in _batches(counting):
        scores = _score(batch, by_id, scorer)
        for row, score in zip(batch, scores, strict=True):
            verdicts[row["row_id"], row["round"]] = Verdict(
                score,
                any(_is_degenerate(turn) for turn in row["turns"]),
                any(_cut_while_thinking(turn) for turn in row["turns"]),
            )

    def with_verdict(row: Row) -> Row:
        if counting_attempt.get(row["round"]) != row["attempt"]:
            return {**row, "superseded": True}
        verdict = verdicts[row["row_id"], row["round"]]
        found: dict[str, Any] = {
            "degenerate": verdict.degenerate,
            "truncated_thinking": verdict.truncated_thinking,
        }
        if verdict.score is not None:
            found["score"] = {key: value for key, value in asdict(verdict.score).items() if value is not None}
        return row | found

    rewrite(rows_path, with_verdict)
    return verdicts


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _score(rows: Sequence[Row], prompts: Mapping[str, Prompt], scorer: Scorer | None) -> list[Score | None]:
    scores: list[Score | None] = [None] * len(rows)
    if scorer is None:
        return scores
    asked = [at for at, row in enumerate(rows) if row["status"] != "skipped"]
    found = scorer.score_all([answer_of(rows[at], prompts[rows[at]["row_id"]]) for at in asked])
    for at, score in zip(asked, found, strict=True):
        scores[at] = score
    return scores


def answer_of(row: Row, prompt: Prompt) -> Answer:
    """A row as a scorer wants it."""
    questions = [message["content"] for message in prompt.messages if message["role"] == "user"][-1:]
    return Answer(
        row_id=prompt.row_id,
        reference=prompt.reference,
        outputs=tuple(turn["text"] for turn in row["turns"]),
        truncated=any(turn["finish_reason"] == "length" for turn in row["turns"]),
        failed=row["status"] != "ok",
        question=tuple(str(question) for question in (*questions, *prompt.followups)),
        category=prompt.category,
    )


def _is_degenerate(turn: Mapping[str, Any]) -> bool:
    cut = turn["finish_reason"] == "length"
    return any(is_loop(text, truncated=cut) for text in (turn["text"], turn["reasoning"]) if text)


def _cut_while_thinking(turn: Mapping[str, Any]) -> bool:
    if turn["finish_reason"] != "length":
        return False
    # A reasoning parser leaves the answer empty; without one the thinking is in the text.
    return (not turn["text"] and bool(turn["reasoning"])) or split_thinking(turn["text"]).unfinished

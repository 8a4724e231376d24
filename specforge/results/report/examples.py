"""The prompts worth reading: loops, the slowest, and those where the drafts were worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from specforge.errors import RecordError
from specforge.metrics.significance import Array
from specforge.results.cell import Cell
from specforge.results.load import SavedRun
from specforge.results.relate import rows_path
from specforge.results.rows import Row, read_rows

EACH = 3  # prompts of a kind in a cell
LONGEST = 3000  # characters of a text that are shown
_Key = tuple[str, int]


@dataclass(frozen=True)
class Example:
    """One prompt with its answer.

    Attributes:
        run: the run's label.
        cell: the cell's.
        row_id: the prompt.
        why: why it is shown.
        question: its last user message, shortened.
        answer: the model's text, thinking first, shortened.
    """

    run: str
    cell: str
    row_id: str
    why: str
    question: str
    answer: str


def find_examples(runs: Sequence[SavedRun]) -> tuple[list[Example], list[str]]:
    """The examples of all cells, and one line for each rows file that can't be read."""
    examples: list[Example] = []
    problems: list[str] = []
    for run in runs:
        for cell in map(Cell, run.cells):
            wanted = _choose(cell)
            path = rows_path(cell.record, run.folder)
            if not wanted or path is None:
                continue
            try:
                found = _read(read_rows(path), wanted)
            except RecordError as error:
                problems.append(str(error))
                continue
            examples += [
                Example(run.label, cell.label, key[0], why, *_texts(found[key]))
                for key, why in wanted.items()
                if key in found
            ]
    return examples, problems


def _choose(cell: Cell) -> dict[_Key, str]:
    requests = cell.record["requests"]
    keys: list[_Key] = list(zip(requests.get("row_id", ()), requests.get("round", ()), strict=False))
    chosen: dict[_Key, list[str]] = {}
    for at in _highest(cell.column("degenerate")):
        if requests["degenerate"][at]:
            chosen.setdefault(keys[at], []).append("loop")
    latency = cell.column("latency")
    for at in _highest(latency):
        if latency is not None and latency[at] > 2 * np.nanmedian(latency):
            chosen.setdefault(keys[at], []).append(f"slow: {latency[at]:.3g} s")
    tokens, steps = cell.column("output_tokens"), cell.column("verify_steps")
    if tokens is not None and steps is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            lengths = np.where(steps > 0, tokens / steps, np.nan)
        for at in _highest(-lengths):
            chosen.setdefault(keys[at], []).append(f"acceptance length {lengths[at]:.2f}")
    return {key: ", ".join(reasons) for key, reasons in chosen.items()}


def _highest(values: Array | None) -> Iterator[int]:
    """Positions of the largest few values; NaN is none."""
    if values is None:
        return
    known = np.flatnonzero(~np.isnan(values))
    yield from map(int, known[np.argsort(-values[known], kind="stable")[:EACH]])


def _read(rows: Iterator[Row], wanted: dict[_Key, str]) -> dict[_Key, Row]:
    found: dict[_Key, Row] = {}
    for row in rows:
        key = (row["row_id"], row.get("round", 0))
        if key in wanted and not row.get("superseded"):
            found[key] = row
            if len(found) == len(wanted):
                break
    return found


def _texts(row: Row) -> tuple[str, str]:
    messages = [message for message in row.get("messages") or () if message.get("role") == "user"]
    question = str(messages[-1].get("content", "")) if messages else ""
    answer = "\n\n".join(
        "\n".join(filter(None, (turn.get("reasoning"), turn.get("text")))) for turn in row.get("turns") or ()
    )
    return _shortened(question), _shortened(answer)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]}\n[... {len(text) - LONGEST} characters ...]\n{text[-LONGEST // 2 :]}"

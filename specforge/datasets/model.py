"""The value types between datasets, the load generator and scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Message = Mapping[str, Any]
"""One chat message: ``role`` and ``content`` (a string, or a list of parts where there is an image)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One row of a dataset as it is asked.

    Attributes:
        row_id: the row's stable name (the dataset's own id column, else a hash of its question). Unique in a dataset.
        index: the row's number in the file or split, as ``specforge score`` refers to it.
        messages: the first request: system, few-shot turns and the question, oldest first.
        followups: later user turns; each is sent after the model's own answer to the turn before.
        reference: what the dataset's scorer compares with; None where the row has none.
        subset: the subset that the row belongs to; empty where the dataset has none.
        category: a group that results are reported by (MT-Bench's category, a subject); empty where there is none.
        has_image: whether the messages hold an image, which a text-only server refuses.
    """

    row_id: str
    index: int
    messages: tuple[Message, ...]
    followups: tuple[str, ...] = ()
    reference: Any = None
    subset: str = ""
    category: str = ""
    has_image: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where a benchmark's rows came from, for the record.

    Attributes:
        kind: ``hub``, ``file`` or ``sample`` (the rows that the project ships).
        location: the Hub's dataset id, or the file's path.
        revision: the commit that the Hub resolved; None for files and samples.
        sha256: of the file's bytes; None for the Hub.
        split: the split or file that the questions come from.
        few_shot: where the examples come from and how many there are, such as ``5 from train``; None for zero-shot.
    """

    kind: str
    location: str
    revision: str | None = None
    sha256: str | None = None
    split: str | None = None
    few_shot: str | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark spec with its rows drawn: what one cell of the matrix asks.

    Attributes:
        name: the registered dataset's name.
        prompts: the measured prompts in drawing order (a smaller draw is a prefix of a larger one).
        warmup: prompts outside the measured ones, in drawing order; the measured ones where no others are left.
        max_new_tokens: the dataset's token limit for one answer.
        source: where the rows came from.
        notes: what the user should be told about the draw, such as "asked for 500, the dataset has 164".
    """

    name: str
    prompts: tuple[Prompt, ...]
    warmup: tuple[Prompt, ...]
    max_new_tokens: int
    source: Source
    notes: tuple[str, ...] = field(default=())

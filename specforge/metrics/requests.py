"""The measured requests as columns: compact enough for a hundred thousand of them, ready for NumPy."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from specforge.metrics.chunks import ChunkGaps

Floats = NDArray[np.float64]
MISSING = math.nan
"""What a column holds where the server reported nothing."""


class TurnSample(NamedTuple):
    """One answered HTTP request, as numbers. Times in seconds on one clock; counts in tokens or drafts.

    Attributes:
        round_index: the round that it belongs to.
        sent_at, ended_at: when it was sent, and when its last byte had arrived.
        output_tokens, prompt_tokens: the server's own counts.
        cached_tokens, verify_steps, correct_drafts, proposed_drafts: as reported; NaN where they weren't.
        ttft: time to first token; NaN where unknown.
        decode_time: from the first token to the end; NaN where unknown.
    """

    round_index: int
    sent_at: float
    ended_at: float
    output_tokens: int
    prompt_tokens: int
    cached_tokens: float = MISSING
    verify_steps: float = MISSING
    correct_drafts: float = MISSING
    proposed_drafts: float = MISSING
    ttft: float = MISSING
    decode_time: float = MISSING


_COLUMNS = TurnSample._fields


class TurnColumns:
    """All answered HTTP requests of a cell, one array a field of :class:`TurnSample`."""

    def __init__(self) -> None:
        self._columns = {name: array("d") for name in _COLUMNS}
        self.histograms: dict[int, list[int]] = {}
        self.gaps: dict[int, ChunkGaps] = {}

    def __len__(self) -> int:
        return len(self._columns["sent_at"])

    def add(self, sample: TurnSample, histogram: list[int] | None = None) -> None:
        """Appends one request; its histogram of correct drafts is added to its round's."""
        for column, value in zip(self._columns.values(), sample, strict=True):
            column.append(value)
        if histogram is not None:
            self._add_histogram(sample.round_index, histogram)

    def extend(self, other: TurnColumns) -> None:
        """Appends the requests of another process."""
        for name, column in self._columns.items():
            column.extend(other._columns[name])
        for round_index, histogram in other.histograms.items():
            self._add_histogram(round_index, histogram)
        for round_index, gaps in other.gaps.items():
            own = self.gaps.get(round_index)
            self.gaps[round_index] = gaps if own is None else ChunkGaps.merged((own, gaps))

    def _add_histogram(self, round_index: int, histogram: list[int]) -> None:
        total = self.histograms.setdefault(round_index, [])
        total.extend([0] * (len(histogram) - len(total)))
        for accepted, steps in enumerate(histogram):
            total[accepted] += steps

    def add_gap(self, round_index: int, gap: float, tokens: int) -> None:
        """Counts a streamed chunk: ``gap`` seconds after the one before it, with ``tokens`` tokens in it."""
        self.gaps.setdefault(round_index, ChunkGaps()).add(gap, tokens)

    def drop_round(self, round_index: int) -> None:
        """Forgets a round that is measured again."""
        keep = [i for i, r in enumerate(self._columns["round_index"]) if r != round_index]
        for name, column in self._columns.items():
            self._columns[name] = array("d", (column[i] for i in keep))
        self.histograms.pop(round_index, None)
        self.gaps.pop(round_index, None)

    def column(self, name: str) -> Floats:
        """One field of every request, shape [requests]."""
        return np.frombuffer(self._columns[name], dtype=np.float64) if len(self) else np.empty(0)

    def of_round(self, round_index: int) -> NDArray[np.bool_]:
        """Which requests belong to a round, shape [requests]."""
        mask: NDArray[np.bool_] = self.column("round_index") == round_index
        return mask


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """One measured round's window.

    Attributes:
        started_at: when the first request was sent.
        ended_at: when the last one ended.
        usable: whether no request failed or was retried, so that the round says something about speed.
    """

    started_at: float
    ended_at: float
    usable: bool

    @property
    def duration(self) -> float:
        """Length of the window, s."""
        return self.ended_at - self.started_at


@dataclass(slots=True)
class PromptColumns:
    """The prompts of a cell, one entry for a prompt in a round (a conversation is one entry, its turns summed).

    The fields are the arrays of a record's ``requests``; see :mod:`specforge.results.record`.
    """

    row_id: list[str] = field(default_factory=list)
    round: list[int] = field(default_factory=list)
    output_tokens: list[int] = field(default_factory=list)
    verify_steps: list[int | None] = field(default_factory=list)
    correct_drafts: list[int | None] = field(default_factory=list)
    latency: list[float | None] = field(default_factory=list)
    ttft: list[float | None] = field(default_factory=list)
    tpot: list[float | None] = field(default_factory=list)
    correct: list[bool | None] = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)
    truncated_thinking: list[bool] = field(default_factory=list)
    degenerate: list[bool] = field(default_factory=list)
    retries: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.row_id)

    def drop_round(self, round_index: int) -> None:
        """Forgets a round that is measured again."""
        keep = [i for i, r in enumerate(self.round) if r != round_index]
        for name in self.__dataclass_fields__:
            values = getattr(self, name)
            setattr(self, name, [values[i] for i in keep])

    def extend(self, other: PromptColumns) -> None:
        """Appends the prompts of another process."""
        for name in self.__dataclass_fields__:
            getattr(self, name).extend(getattr(other, name))

"""Inter-token latency of streamed answers, kept as a histogram: a long run has tens of millions of chunks."""

from __future__ import annotations

import math
from collections.abc import Iterable

_FINEST = 1e-5  # s; shorter gaps are counted here
_RATIO = 1.02  # width of a bin: percentiles are right to 1 %
_BINS = 1000  # up to _FINEST * _RATIO**_BINS, more than an hour


class ChunkGaps:
    """Gaps between streamed tokens. A chunk with n tokens counts as n gaps of an n-th of the time each."""

    def __init__(self) -> None:
        self._counts = [0] * (_BINS + 1)
        self._sum = 0.0
        self.total = 0

    def add(self, gap: float, tokens: int) -> None:
        """Counts one chunk: ``gap`` seconds after the chunk before it, with ``tokens`` tokens in it."""
        each = gap / tokens
        at = 0 if each <= _FINEST else min(_BINS, 1 + int(math.log(each / _FINEST) / math.log(_RATIO)))
        self._counts[at] += tokens
        self._sum += gap
        self.total += tokens

    @classmethod
    def merged(cls, parts: Iterable[ChunkGaps]) -> ChunkGaps:
        """The gaps of all parts together."""
        whole = cls()
        for part in parts:
            whole._counts = [count + more for count, more in zip(whole._counts, part._counts, strict=True)]
            whole._sum += part._sum
            whole.total += part.total
        return whole

    def summary(self) -> dict[str, float] | None:
        """``mean, p50, p90, p95, p99`` in seconds a token; None where nothing was streamed."""
        if not self.total:
            return None
        return {"mean": self._sum / self.total} | {f"p{p}": self._percentile(p / 100) for p in (50, 90, 95, 99)}

    def _percentile(self, share: float) -> float:
        needed, seen = share * self.total, 0
        for at, count in enumerate(self._counts):
            seen += count
            if seen >= needed and count:
                return _FINEST * float(_RATIO ** max(0.0, at - 0.5))
        return _FINEST * float(_RATIO**_BINS)

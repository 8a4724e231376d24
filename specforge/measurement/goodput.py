"""Goodput: how many requests were answered as quickly as their users need it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specforge.errors import UsageError
from specforge.metrics.requests import Floats, RoundTimes, TurnColumns

_LIMIT = re.compile(r"(?P<name>[a-z]+):(?P<value>[0-9]+(\.[0-9]+)?)(?P<unit>ms|s)\Z")
_NAMES = ("ttft", "tpot", "latency")


@dataclass(frozen=True, slots=True)
class Goodput:
    """Limits that a good request keeps, in seconds: by ``ttft``, ``tpot`` or ``latency`` (end to end)."""

    limits: Mapping[str, float]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Goodput:
        """Reads ``--goodput ttft:500ms tpot:30ms``.

        Raises:
            UsageError: a limit of another shape or name, or one named twice.
        """
        limits: dict[str, float] = {}
        for text in texts:
            found = _LIMIT.match(text.strip().lower())
            if found is None or found["name"] not in _NAMES:
                raise UsageError(
                    f"--goodput: {text!r} is not a limit; expected NAME:TIME with ms or s, such as ttft:500ms, "
                    f"of {', '.join(_NAMES)}"
                )
            if found["name"] in limits:
                raise UsageError(f"--goodput: {found['name']} has two limits")
            limits[found["name"]] = float(found["value"]) / (1000 if found["unit"] == "ms" else 1)
        return cls(limits)

    def metric(self, turns: TurnColumns, rounds: Mapping[int, RoundTimes], lost: int) -> dict[str, Any] | None:
        """``limits`` (s), ``requests`` that keep all of them, ``share``, ``per_second`` and ``share_by_limit``.

        An answer of one token has no time per output token and keeps that limit.

        Args:
            turns: the answered requests.
            rounds: each round's window; those without a failed or retried request count.
            lost: requests that got no answer, or had no room for one; they keep no limit.

        Returns:
            None where no round counts, or where a limited time is not known of every request.
        """
        usable = {index: times for index, times in rounds.items() if times.usable}
        counts = np.isin(turns.column("round_index"), list(usable))
        duration = sum(times.duration for times in usable.values())
        if not counts.any() or duration <= 0:
            return None
        times = _times(turns, counts)
        if any(np.isnan(times[name]).any() for name in self.limits):
            return None
        kept = {name: times[name] <= limit for name, limit in self.limits.items()}
        all_kept = int(np.logical_and.reduce(list(kept.values())).sum())
        asked = int(counts.sum()) + lost
        return {
            "limits": dict(self.limits),
            "requests": all_kept,
            "share": all_kept / asked,
            "per_second": all_kept / duration,
            "share_by_limit": {name: int(keeps.sum()) / asked for name, keeps in kept.items()},
        }


def _times(turns: TurnColumns, counts: Floats | Any) -> dict[str, Floats]:
    tokens, decode = turns.column("output_tokens")[counts], turns.column("decode_time")[counts]
    return {
        "ttft": turns.column("ttft")[counts],
        "tpot": np.where(tokens > 1, decode / np.maximum(tokens - 1, 1), 0.0),
        "latency": (turns.column("ended_at") - turns.column("sent_at"))[counts],
    }

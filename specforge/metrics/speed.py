"""Throughput and latency of measured requests."""

from __future__ import annotations

from typing import Any

import numpy as np

from specforge.metrics.requests import Floats

PERCENTILES = (50, 90, 95, 99)


def distribution(values: Floats) -> dict[str, float] | None:
    """``mean`` and the percentiles 50, 90, 95, 99 (linear interpolation); None where nothing was measured."""
    known = values[~np.isnan(values)]
    if not known.size:
        return None
    quantiles = np.percentile(known, PERCENTILES)
    return {"mean": float(known.mean())} | {f"p{p}": float(q) for p, q in zip(PERCENTILES, quantiles, strict=True)}


def requests_in_flight(sent_at: Floats, ended_at: Floats, started_at: float, finished_at: float) -> float | None:
    """Mean number of requests in flight over a window: Σ latency ÷ length of the window."""
    length = finished_at - started_at
    return float((ended_at - sent_at).sum() / length) if length > 0 and sent_at.size else None


def saturated_throughput(
    sent_at: Floats, ended_at: Floats, output_tokens: Floats, slots: int
) -> tuple[float, float] | None:
    """(tokens, seconds) while all ``slots`` were busy, within one round; None where they never were.

    The tokens of a request are spread evenly over its time in flight: where in it they came, its reply doesn't tell.
    """
    if sent_at.size < slots:
        return None
    times = np.concatenate([sent_at, ended_at])
    # A slot that is freed is filled again a moment later; that gap is the harness's own and counts as busy.
    changes = np.concatenate([np.ones_like(sent_at), -np.ones_like(ended_at)])
    order = np.argsort(times, kind="stable")
    in_flight = np.cumsum(changes[order])
    full = np.flatnonzero(in_flight >= slots)
    if not full.size:
        return None
    begin = times[order][full[0]]
    end = times[order][min(full[-1] + 1, times.size - 1)]
    if end <= begin:
        return None
    overlap = np.clip(np.minimum(ended_at, end) - np.maximum(sent_at, begin), 0, None)
    latency = np.maximum(ended_at - sent_at, 1e-12)
    return float((output_tokens * overlap / latency).sum()), float(end - begin)


def token_timings(turns_ttft: Floats, decode_time: Floats, output_tokens: Floats, source: str) -> dict[str, Any]:
    """``ttft`` and ``tpot`` (decode time ÷ (tokens − 1), of answers of two tokens and more), with their source."""
    several = output_tokens > 1
    tpot = np.full(output_tokens.shape, np.nan)
    tpot[several] = decode_time[several] / (output_tokens[several] - 1)
    found: dict[str, Any] = {"ttft": distribution(turns_ttft), "tpot": distribution(tpot)}
    for summary in found.values():
        if summary is not None:
            summary["source"] = source
    return found

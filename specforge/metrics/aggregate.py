"""A cell's columns -> the numbers of its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specforge.metrics.acceptance import NOTHING_REPORTED, acceptance_metrics
from specforge.metrics.chunks import ChunkGaps
from specforge.metrics.requests import Floats, RoundTimes, TurnColumns
from specforge.metrics.speed import distribution, requests_in_flight, saturated_throughput, token_timings

NO_USABLE_ROUND = "a request failed or was retried in every round, so none says anything about speed"
NO_ROUND = "no round was measured to its end"
NOT_REPORTED = "not reported by the server, and not streamed"

Mask = NDArray[np.bool_]


def speed_and_acceptance(
    turns: TurnColumns,
    rounds: Mapping[int, RoundTimes],
    slots: int | None,
    timing_source: str,
) -> dict[str, Any]:
    """Every metric that the requests themselves give; see :mod:`specforge.metrics` for the names.

    Args:
        turns: the answered requests of the rounds that count.
        rounds: each round's window.
        slots: requests that may be in flight at once; None for an open loop.
        timing_source: where first-token times are from, ``stream`` or ``server``.
    """
    reasons: dict[str, str] = {}
    usable = {index: times for index, times in rounds.items() if times.usable}
    in_usable = np.isin(turns.column("round_index"), list(usable))
    metrics: dict[str, Any] = {
        "duration": sum(times.duration for times in usable.values()) if usable else None,
        "output_tokens": int(turns.column("output_tokens").sum()),
        "prompt_tokens": int(turns.column("prompt_tokens").sum()),
        "requests": len(turns),
        "rounds": [_one_round(turns, index, times) for index, times in sorted(rounds.items())],
    }
    metrics |= _throughput(turns, usable, slots)
    metrics["latency"] = distribution((turns.column("ended_at") - turns.column("sent_at"))[in_usable])
    metrics |= token_timings(
        turns.column("ttft")[in_usable],
        turns.column("decode_time")[in_usable],
        turns.column("output_tokens")[in_usable],
        timing_source,
    )
    metrics["itl"] = ChunkGaps.merged(gaps for index, gaps in turns.gaps.items() if index in usable).summary()
    metrics["cached_token_share"] = _cached_share(turns)
    metrics |= _acceptance(turns, np.ones(len(turns), dtype=bool), list(turns.histograms))
    unusable = NO_USABLE_ROUND if rounds else NO_ROUND
    if not usable:
        reasons |= dict.fromkeys(("output_throughput", "request_throughput", "duration", "latency"), unusable)
    for name in ("ttft", "tpot"):
        if metrics[name] is None:
            reasons[name] = NOT_REPORTED if usable else unusable
    if metrics["acceptance_length"] is None:
        reasons["acceptance_length"] = NOTHING_REPORTED
    metrics["reasons"] = reasons
    return metrics


def _throughput(turns: TurnColumns, usable: Mapping[int, RoundTimes], slots: int | None) -> dict[str, Any]:
    sent, ended, tokens = (turns.column(name) for name in ("sent_at", "ended_at", "output_tokens"))
    total_tokens = total_time = busy_tokens = busy_time = flight_time = 0.0
    requests = 0
    for index, times in usable.items():
        mask = turns.of_round(index)
        total_tokens += float(tokens[mask].sum())
        total_time += times.duration
        requests += int(mask.sum())
        in_flight = requests_in_flight(sent[mask], ended[mask], times.started_at, times.ended_at)
        flight_time += (in_flight or 0.0) * times.duration
        busy = saturated_throughput(sent[mask], ended[mask], tokens[mask], slots) if slots else None
        if busy is not None:
            busy_tokens += busy[0]
            busy_time += busy[1]
    return {
        "output_throughput": total_tokens / total_time if total_time > 0 else None,
        "output_throughput_saturated": busy_tokens / busy_time if busy_time > 0 else None,
        "request_throughput": requests / total_time if total_time > 0 else None,
        "requests_in_flight": flight_time / total_time if total_time > 0 else None,
    }


def _one_round(turns: TurnColumns, index: int, times: RoundTimes) -> dict[str, Any]:
    mask = turns.of_round(index)
    tokens = turns.column("output_tokens")[mask]
    latency = distribution((turns.column("ended_at") - turns.column("sent_at"))[mask]) or {}
    timings = token_timings(turns.column("ttft")[mask], turns.column("decode_time")[mask], tokens, "")
    return {
        "duration": times.duration,
        "output_tokens": int(tokens.sum()),
        "output_throughput": float(tokens.sum() / times.duration) if times.usable and times.duration > 0 else None,
        "usable": times.usable,
        "latency_p50": latency.get("p50"),
        "latency_p99": latency.get("p99"),
        "ttft_p50": (timings["ttft"] or {}).get("p50"),
        "tpot_p50": (timings["tpot"] or {}).get("p50"),
        "acceptance_length": _acceptance(turns, mask, [index])["acceptance_length"],
    }


def _acceptance(turns: TurnColumns, mask: Mask, rounds: Sequence[int]) -> dict[str, Any]:
    tokens, steps, correct, proposed = (
        turns.column(name)[mask] for name in ("output_tokens", "verify_steps", "correct_drafts", "proposed_drafts")
    )
    return acceptance_metrics(tokens, steps, correct, proposed, _pooled_histogram(turns, rounds))


def _pooled_histogram(turns: TurnColumns, rounds: Sequence[int]) -> list[int] | None:
    found = [turns.histograms[index] for index in rounds if turns.histograms.get(index)]
    if not found:
        return None
    total = np.zeros(max(map(len, found)), dtype=np.int64)
    for histogram in found:
        total[: len(histogram)] += histogram
    return [int(count) for count in total]


def _cached_share(turns: TurnColumns) -> float | None:
    cached: Floats = turns.column("cached_tokens")
    known = ~np.isnan(cached)
    asked = turns.column("prompt_tokens")[known].sum()
    return float(cached[known].sum() / asked) if asked > 0 else None

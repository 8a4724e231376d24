"""Speedup of one cell over another, with its interval, and how much of the acceptance became speed."""

from __future__ import annotations

from specforge.metrics.significance import (
    Array,
    Change,
    change_of_log_ratio,
    change_of_ratio,
    moderated_noise,
)

Interval = tuple[float, float]


def interval_by_rounds(speedup: float, cell: Array, baseline: Array) -> Interval | None:
    """The 95 % interval of a speedup from the noise between rounds.

    Args:
        speedup: the ratio of the two throughputs.
        cell: logarithms of the cell's throughput, one a round.
        baseline: those of its target-only cell.

    Returns:
        None where neither has two rounds.
    """
    noise = moderated_noise([[cell], [baseline]])
    known = [entry for entry in noise if entry is not None]
    if not known or not len(cell) or not len(baseline):
        return None
    return _around(speedup, change_of_log_ratio([(baseline, cell, noise[1] or known[0], noise[0] or known[0])]))


def interval_by_prompts(speedup: float, cell: tuple[Array, Array], baseline: tuple[Array, Array]) -> Interval | None:
    """The 95 % interval of a speedup from one round: how Σ tokens ÷ Σ latency varies with the prompts drawn.

    It says nothing of the machine's noise, which moves all prompts of a round together.

    Args:
        speedup: the ratio of the two throughputs.
        cell: output tokens and latency (s), one of each a prompt.
        baseline: the same of the target-only cell, in the same order of prompts.
    """
    change = change_of_ratio(baseline, cell)
    return None if change is None else _around(speedup, change)


def _around(speedup: float, change: Change) -> Interval:
    return speedup * (1 + change.low) / (1 + change.estimate), speedup * (1 + change.high) / (1 + change.estimate)


def efficiency(speedup: float | None, acceptance_length: float | None) -> float | None:
    """Speedup ÷ acceptance length; None where either is unknown."""
    return speedup / acceptance_length if speedup is not None and acceptance_length else None

"""Distributions, intervals and the correction for many tests. The standard library and NumPy, no simulation.

Student's distribution takes fractional degrees of freedom, which pooled and moderated variances have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

CONFIDENCE = 0.95
"""The confidence of every interval that the harness prints."""


def normal_quantile(probability: float) -> float:
    """The standard normal's quantile at ``probability``, which lies strictly between 0 and 1."""
    return NormalDist().inv_cdf(probability)


def student_tail(t: float, degrees: float) -> float:
    """P(T > t) for Student's T, accurate in relative terms also far out, where Holm's correction looks.

    Args:
        t: the statistic; may be infinite.
        degrees: degrees of freedom, above 0; infinite for the normal distribution.
    """
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    if math.isinf(degrees):
        return 0.5 * math.erfc(t / math.sqrt(2))
    half = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    return half if t >= 0 else 1 - half


def student_quantile(probability: float, degrees: float) -> float:
    """The t with P(T <= t) = ``probability``; ``degrees`` as in :func:`student_tail`."""
    if math.isinf(degrees):
        return normal_quantile(probability)
    if probability < 0.5:
        return -student_quantile(1 - probability, degrees)
    tail = 1 - probability
    low, high = 0.0, 1.0
    while student_tail(high, degrees) > tail:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if student_tail(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 10_000):
        for coefficient in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + coefficient * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + coefficient / c
            c = c if abs(c) > tiny else tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction


def wilson_interval(successes: float, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Wilson's score interval of a share (Wilson 1927), inside [0, 1] also at shares of 0 and 1.

    Args:
        successes: how many of the trials; fractional where rounds were averaged within a prompt.
        trials: how many prompts; None is returned for 0.
    """
    if not trials:
        return None
    z2 = normal_quantile((1 + confidence) / 2) ** 2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    variance = share * (1 - share) / trials + z2 / (4 * trials * trials)
    half = math.sqrt(z2 * max(variance, 0.0)) / (1 + z2 / trials)
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    high = 1.0 if successes >= trials else min(1.0, centre + half)
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values (1979), in the order given: comparing each with a level α keeps the chance of
    even one false alarm among them at most α, however the tests depend on each other."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted

"""How far a metric moved between two runs, and whether noise alone would have moved it as far.

Three designs, one for each kind of unit; each gives a :class:`Change`:

- **rounds, log scale** (throughput, latencies): machine noise moves all prompts of a round together, so the round is
  the unit. The noise of a cell is estimated from both runs' rounds and moderated towards the noise of the other cells
  (Smyth 2004), which a handful of rounds alone cannot estimate; then a t test of the log ratio.
- **prompts, paired, a ratio of sums** (acceptance length): the log of Σ numerator ÷ Σ denominator, linearised into one
  influence for each prompt; a paired t test of those. Sums weigh long answers more, and so does this test.
- **prompts, paired, a share** (accuracy, losslessness): the exact distribution of the mean difference when each
  prompt's two verdicts may be swapped. With one round that is McNemar's exact test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specforge.metrics.statistics import CONFIDENCE, normal_quantile, student_quantile, student_tail

Array = npt.NDArray[np.float64]

SMALLEST_NOISE = 1e-3
"""Relative noise between rounds below which no estimate is believed: clocks and schedulers are not better."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a metric moved, with its 95 % interval and its chance under no change.

    Attributes:
        estimate: new ÷ base − 1 where ``relative``, else new − base.
        low: the interval's lower end, in the same terms.
        high: its upper end.
        p_down: the chance to see a move at least this far down where nothing changed.
        p_up: the same, upwards.
        units: rounds or prompts of the smaller side that this rests on.
        relative: which of the two the estimate is.
        error: standard error of the estimate (of its logarithm where relative).
        degrees: degrees of freedom of that error; infinite for exact tests.
    """

    estimate: float
    low: float
    high: float
    p_down: float
    p_up: float
    units: int
    relative: bool
    error: float
    degrees: float

    @property
    def is_none(self) -> bool:
        """Whether every unit came out exactly as before: nothing moved, and nothing is left to be decided."""
        return self.estimate == 0 and self.error == 0

    def resolution(self, level: float, *, upwards: bool) -> float:
        """The smallest true move in one direction that this many units with this much noise would call at ``level``.

        A share has a second bound: k losses and no gain have the chance 2^-k.
        """
        if self.relative:
            reach = student_quantile(1 - level, self.degrees) * self.error
            return math.expm1(min(reach, 700.0)) if upwards else -math.expm1(-reach)
        one_sided = math.ceil(-math.log2(level)) / self.units
        return max(normal_quantile(1 - level) * self.error, one_sided)


@dataclass(frozen=True, slots=True)
class Noise:
    """The variance of a logarithm between rounds, and how many degrees of freedom its estimate has."""

    variance: float
    degrees: float


def moderated_noise(groups: Sequence[Sequence[Array]]) -> list[Noise | None]:
    """The noise between the rounds of each cell, sharpened by that of the other cells.

    A cell's own variance with d degrees of freedom is averaged with a common one that counts as d0 degrees (Smyth
    2004, empirical Bayes): where all cells are about as noisy d0 is large and they share one estimate, where they
    are not each keeps its own.

    Args:
        groups: for each cell the logarithms of its rounds, one array a run. Means may differ between runs.

    Returns:
        one entry a cell, None where the cell has no two rounds in the same run.
    """
    degrees = [sum(len(run) - 1 for run in runs if len(run)) for runs in groups]
    own = [
        max(sum(float(((run - run.mean()) ** 2).sum()) for run in runs if len(run)) / d, SMALLEST_NOISE**2)
        if d
        else None
        for runs, d in zip(groups, degrees, strict=True)
    ]
    known = [(variance, d) for variance, d in zip(own, degrees, strict=True) if variance is not None]
    if not known:
        return [None] * len(groups)
    prior = _prior(known)
    total = float(sum(d for _, d in known))

    def moderate(variance: float, d: int) -> Noise:
        if math.isinf(prior.degrees):
            return Noise(prior.variance, total)
        shared = (prior.degrees * prior.variance + d * variance) / (prior.degrees + d)
        return Noise(shared, min(prior.degrees + d, total))

    return [None if v is None else moderate(v, d) for v, d in zip(own, degrees, strict=True)]


def _prior(known: Sequence[tuple[float, int]]) -> Noise:
    """The common variance and its weight in degrees of freedom: moments of log s², section 6.2 of Smyth (2004).

    How much the cells differ in noise is itself poorly known from a few cells. Its estimate is raised by one standard
    error, so that few cells share cautiously.
    """
    pooled = sum(variance * d for variance, d in known) / sum(d for _, d in known)
    if len(known) == 1:
        return Noise(pooled, 0.0)
    logs = [math.log(variance) - _digamma(d / 2) + math.log(d / 2) for variance, d in known]
    mean = sum(logs) / len(logs)
    spread = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    sampling = sum(_trigamma(d / 2) for _, d in known) / len(known)
    excess = spread - sampling * (1 - math.sqrt(2 / (len(known) - 1)))
    if excess <= 0:
        return Noise(pooled, math.inf)
    degrees = 2 * _trigamma_inverse(excess)
    return Noise(math.exp(mean + _digamma(degrees / 2) - math.log(degrees / 2)), degrees)


def _digamma(x: float) -> float:
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    return shift + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


def _trigamma(x: float) -> float:
    shift = 0.0
    while x < 10:
        shift += 1 / x**2
        x += 1
    return shift + 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5) + 1 / (42 * x**7)


def _trigamma_inverse(value: float) -> float:
    """Where the trigamma function, which falls from infinity to 0, has this value: bisection on the exponent."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _trigamma(math.exp(middle)) > value else (low, middle)
    return math.exp((low + high) / 2)


def change_of_log_ratio(parts: Sequence[tuple[Array, Array, Noise, Noise]]) -> Change:
    """The ratio of two geometric means over rounds, or the ratio of two such ratios.

    Variances add up, with Satterthwaite's degrees of freedom.

    Args:
        parts: for each ratio the logarithms of the rounds below and above the line, and the noise of either. A first
            part counts as it is; a second one is divided by: the cell and its target-only cell make a speedup.
    """
    estimate = 0.0
    variances: list[tuple[float, float]] = []
    for sign, (below, above, noise_below, noise_above) in zip((1, -1), parts, strict=False):
        estimate += sign * float(above.mean() - below.mean())
        if noise_below is noise_above:
            variances.append((noise_below.variance * (1 / len(below) + 1 / len(above)), noise_below.degrees))
        else:
            variances.append((noise_below.variance / len(below), noise_below.degrees))
            variances.append((noise_above.variance / len(above), noise_above.degrees))
    total = sum(variance for variance, _ in variances)
    degrees = total**2 / sum(variance**2 / d for variance, d in variances)
    units = min(len(rounds) for part in parts for rounds in part[:2])
    return _from_log_ratio(estimate, total, degrees, units)


def change_of_ratio(base: tuple[Array, Array], new: tuple[Array, Array]) -> Change | None:
    """The ratio of Σ numerator ÷ Σ denominator in two runs of the same prompts.

    Args:
        base: numerators and denominators, one of each for every prompt.
        new: the same of the new run, prompt by prompt in the same order.

    Returns:
        None for fewer than two prompts, or where a sum is 0.
    """
    sums = [float(values.sum()) for values in (*base, *new)]
    count = len(base[0])
    if count < 2 or min(sums) <= 0:
        return None
    base_top, base_bottom, new_top, new_bottom = sums
    estimate = math.log(new_top / new_bottom) - math.log(base_top / base_bottom)
    influence = (new[0] / new_top - new[1] / new_bottom) - (base[0] / base_top - base[1] / base_bottom)
    variance = float((influence**2).sum()) * count / (count - 1)
    return _from_log_ratio(estimate, variance, count - 1, count)


def _from_log_ratio(estimate: float, variance: float, degrees: float, units: int) -> Change:
    error = math.sqrt(variance)
    without_noise = math.copysign(math.inf, estimate) if estimate else 0.0
    t = estimate / error if error else without_noise
    half = student_quantile((1 + CONFIDENCE) / 2, degrees) * error
    return Change(
        estimate=math.expm1(estimate),
        low=math.expm1(estimate - half),
        high=math.expm1(min(estimate + half, 700.0)),
        p_down=student_tail(-t, degrees),
        p_up=student_tail(t, degrees),
        units=units,
        relative=True,
        error=error,
        degrees=degrees,
    )


def change_of_share(base: Array, new: Array) -> Change | None:
    """The difference of two shares over the same prompts.

    The interval is Agresti and Min's (2005) for matched pairs: it has width also where no prompt changed.

    Args:
        base: for each prompt its share of 1 (0 or 1, or a fraction where rounds were averaged).
        new: the same of the new run, in the same order.

    Returns:
        None where there is no prompt.
    """
    count = len(base)
    if not count:
        return None
    differences = new - base
    total, squares = float(differences.sum()), float((differences**2).sum())
    p_down, p_up = sign_flip_tails(differences)
    centre = total / (count + 2)
    adjusted_error = math.sqrt(max(squares + 1 - total**2 / (count + 2), 0.0)) / (count + 2)
    half = normal_quantile((1 + CONFIDENCE) / 2) * adjusted_error
    estimate = total / count
    return Change(
        estimate=estimate,
        low=max(-1.0, min(estimate, centre - half)),
        high=min(1.0, max(estimate, centre + half)),
        p_down=p_down,
        p_up=p_up,
        units=count,
        relative=False,
        error=math.sqrt(squares) / count,
        degrees=math.inf,
    )


def sign_flip_tails(differences: Array) -> tuple[float, float]:
    """P(S <= s) and P(S >= s) for the sum S of the differences, each with a fair random sign, exactly.

    The differences are multiples of one fraction (verdicts averaged over rounds), so S lives on a lattice: prompts
    with the same size of difference give a binomial, and the binomials are convolved.
    """
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0, 1.0
    steps = np.rint(moved * _lattice(moved)).astype(np.int64)
    distribution = np.ones(1)
    for size, count in zip(*np.unique(np.abs(steps), return_counts=True), strict=True):
        spread = np.zeros(int(size) * int(count) + 1)
        spread[:: int(size)] = _fair_binomial(int(count))
        distribution = np.convolve(distribution, spread)
    # Index i of the distribution stands for the sum 2 i - Σ|step|.
    observed = (int(steps.sum()) + int(np.abs(steps).sum())) // 2
    p_down, p_up = float(distribution[: observed + 1].sum()), float(distribution[observed:].sum())
    return min(p_down, 1.0), min(p_up, 1.0)


def _lattice(values: Array, largest: int = 400) -> int:
    """The smallest denominator that makes all values whole; ``largest`` where none up to it does."""
    for denominator in range(1, largest):
        scaled = values * denominator
        if np.abs(scaled - np.rint(scaled)).max() < 1e-6:
            return denominator
    return largest


def _fair_binomial(count: int) -> Array:
    """The probabilities of 0..count successes in ``count`` fair trials."""
    log_factorial = np.array([math.lgamma(k + 1) for k in range(count + 1)])
    logs = log_factorial[count] - log_factorial - log_factorial[::-1] - count * math.log(2)
    probabilities: Array = np.exp(logs)
    return probabilities

"""Reference values: Welch's and paired tests worked by hand, McNemar's binomial, limma's squeezing at its limits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from specforge.metrics.significance import (
    Noise,
    change_of_log_ratio,
    change_of_ratio,
    change_of_share,
    moderated_noise,
    sign_flip_tails,
)
from specforge.metrics.statistics import student_quantile


def logs(*values: float) -> np.ndarray:
    return np.log(np.array(values))


def test_one_cell_alone_keeps_its_own_pooled_variance() -> None:
    (noise,) = moderated_noise([[np.array([0.0, 0.2]), np.array([1.0, 1.1, 1.2])]])
    assert noise is not None
    assert noise.variance == pytest.approx((0.02 + 0.02) / 3)
    assert noise.degrees == 3


def test_equally_noisy_cells_share_one_estimate_with_all_their_degrees() -> None:
    cells = [[np.array([-0.03, 0.0, 0.03]) + i, np.array([-0.03, 0.0, 0.03])] for i in range(12)]
    found = moderated_noise(cells)
    assert all(noise is not None and noise.degrees == 48 for noise in found)
    assert all(noise is not None and noise.variance == pytest.approx(0.0009) for noise in found)


def test_cells_that_differ_widely_in_noise_keep_their_own_order() -> None:
    cells = [[scale * np.array([-1.0, 0.3, 0.7, 0.1, -0.1])] for scale in (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)]
    variances = [noise.variance for noise in moderated_noise(cells) if noise is not None]
    assert len(variances) == 6
    assert variances == sorted(variances)
    assert variances[-1] > 1e6 * variances[1]


def test_a_cell_without_two_rounds_has_no_noise_of_its_own() -> None:
    assert moderated_noise([[np.array([1.0]), np.array([2.0])]]) == [None]


def test_rounds_without_any_noise_are_believed_to_a_thousandth_only() -> None:
    (noise,) = moderated_noise([[np.zeros(3), np.zeros(3)]])
    assert noise is not None
    assert noise.variance == pytest.approx(1e-6)


def test_the_change_of_rounds_is_a_t_test_of_the_logarithms() -> None:
    base, new = logs(100, 104, 98, 102), logs(90, 93, 88, 91)
    noise = Noise(0.0006, 6)
    change = change_of_log_ratio([(base, new, noise, noise)])
    estimate, error = new.mean() - base.mean(), math.sqrt(0.0006 / 2)
    assert change.estimate == pytest.approx(math.exp(estimate) - 1)
    assert change.low == pytest.approx(math.exp(estimate - 2.446912 * error) - 1, rel=1e-5)
    assert change.p_down < 0.001
    assert change.p_up == pytest.approx(1 - change.p_down)
    assert change.units == 4


def test_a_speedups_change_divides_by_that_of_the_target_only_cell() -> None:
    noise = Noise(0.0004, 8)
    cell = (logs(200, 200), logs(180, 180), noise, noise)
    slower_machine = (logs(100, 100), logs(90, 90), Noise(0.0004, 8), noise)
    change = change_of_log_ratio([cell, slower_machine])
    assert change.estimate == pytest.approx(0, abs=1e-12)
    assert change.error == pytest.approx(math.sqrt(0.0008))


def test_the_resolution_of_rounds_is_the_smallest_significant_loss() -> None:
    noise = Noise(0.0009, 8)
    change = change_of_log_ratio([(np.zeros(5), np.zeros(5), noise, noise)])
    reach = student_quantile(0.99, 8) * math.sqrt(0.0009 * 2 / 5)
    assert change.resolution(0.01, upwards=False) == pytest.approx(1 - math.exp(-reach))
    assert change.resolution(0.01, upwards=True) == pytest.approx(math.exp(reach) - 1)


def test_a_ratio_of_sums_weighs_long_answers_more() -> None:
    base = (np.array([10.0, 1000.0]), np.array([10.0, 500.0]))
    new = (np.array([10.0, 1000.0]), np.array([5.0, 500.0]))
    change = change_of_ratio(base, new)
    assert change is not None
    assert change.estimate == pytest.approx((1010 / 505) / (1010 / 510) - 1)


def test_the_same_prompts_with_the_same_sums_did_not_change_at_all() -> None:
    tokens, steps = np.array([30.0, 50.0, 20.0]), np.array([10.0, 20.0, 9.0])
    change = change_of_ratio((tokens, steps), (tokens, steps))
    assert change is not None
    assert change.is_none


def test_pairing_finds_a_small_loss_on_every_prompt_among_prompts_that_differ_widely() -> None:
    rng = np.random.default_rng(3)
    tokens = rng.lognormal(5, 1.2, 60)
    steps = tokens / rng.uniform(1.2, 4, 60)
    change = change_of_ratio((tokens, steps), (tokens, steps * rng.normal(1.04, 0.02, 60)))
    assert change is not None
    assert change.p_down < 1e-4


@pytest.mark.parametrize("tokens, steps", [([5.0], [2.0]), ([5.0, 4.0], [0.0, 0.0])])
def test_a_ratio_of_one_prompt_or_of_no_steps_cannot_be_tested(tokens: list[float], steps: list[float]) -> None:
    side = (np.array(tokens), np.array(steps))
    assert change_of_ratio(side, side) is None


def test_with_one_round_the_test_of_shares_is_mcnemars_exact_one() -> None:
    # 12 prompts lost, 3 gained: P(at most 3 of 15 fair coins) = (1 + 15 + 105 + 455) / 2^15.
    base = np.array([1.0] * 12 + [0.0] * 3 + [1.0] * 85)
    new = np.array([0.0] * 12 + [1.0] * 3 + [1.0] * 85)
    change = change_of_share(base, new)
    assert change is not None
    assert change.estimate == pytest.approx(-0.09)
    assert change.p_down == pytest.approx(576 / 2**15)


def test_averaged_rounds_are_tested_by_their_exact_distribution() -> None:
    differences = np.array([0.2, -0.4, 0.6, 0.2, -1.0, 0.5])
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in itertools.product((1, -1), repeat=6)
    ]
    observed = differences.sum()
    p_down, p_up = sign_flip_tails(differences)
    assert p_down == pytest.approx(sum(s <= observed + 1e-9 for s in sums) / 64)
    assert p_up == pytest.approx(sum(s >= observed - 1e-9 for s in sums) / 64)


def test_thousands_of_flips_keep_the_small_tail_exact() -> None:
    p_down, _ = sign_flip_tails(np.array([-1.0] * 900 + [1.0] * 700))
    fair = sum(math.comb(1600, k) for k in range(701)) / 2**1600
    assert p_down == pytest.approx(fair, rel=1e-6)


def test_no_flip_says_nothing() -> None:
    assert sign_flip_tails(np.zeros(10)) == (1.0, 1.0)


def test_an_unchanged_share_still_has_an_interval() -> None:
    change = change_of_share(np.ones(50), np.ones(50))
    assert change is not None
    assert change.is_none
    assert change.low < -0.02 < 0.02 < change.high


def test_a_handful_of_prompts_can_show_no_small_loss_of_a_share() -> None:
    change = change_of_share(np.ones(5), np.ones(5))
    assert change is not None
    assert change.resolution(0.05, upwards=False) == pytest.approx(1.0)


def test_shares_of_no_prompts_are_none() -> None:
    assert change_of_share(np.zeros(0), np.zeros(0)) is None

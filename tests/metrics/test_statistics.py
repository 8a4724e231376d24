"""Against printed tables: Fisher and Yates for t, Wilson's interval from Newcombe (1998), Holm's own example."""

from __future__ import annotations

import math

import pytest

from specforge.metrics.statistics import (
    holm,
    normal_quantile,
    student_quantile,
    student_tail,
    wilson_interval,
)


@pytest.mark.parametrize(
    "degrees, probability, quantile",
    [
        (1, 0.975, 12.7062),
        (2, 0.95, 2.91999),
        (4, 0.995, 4.60409),
        (10, 0.975, 2.22814),
        (30, 0.9995, 3.64596),
        (120, 0.975, 1.97993),
        (math.inf, 0.975, 1.95996),
    ],
)
def test_student_quantiles_are_those_of_the_tables(degrees: float, probability: float, quantile: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(quantile, rel=1e-5)
    assert student_quantile(1 - probability, degrees) == pytest.approx(-quantile, rel=1e-5)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 5.0, 60.0])
def test_students_tail_has_its_closed_forms(t: float) -> None:
    assert student_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-9)
    assert student_tail(t, 2) == pytest.approx(1 / (2 + t * t + t * math.sqrt(2 + t * t)), rel=1e-9)
    assert student_tail(-t, 2) == pytest.approx(1 - student_tail(t, 2))


def test_students_tail_is_continuous_in_fractional_degrees() -> None:
    assert student_tail(2.0, 7) > student_tail(2.0, 7.5) > student_tail(2.0, 8)


def test_students_tail_approaches_the_normal_one() -> None:
    assert student_tail(3.0, 1e7) == pytest.approx(student_tail(3.0, math.inf), rel=1e-5)
    assert student_tail(3.0, math.inf) == pytest.approx(0.001349898, rel=1e-6)


def test_students_tail_takes_infinite_statistics() -> None:
    assert student_tail(math.inf, 3) == 0
    assert student_tail(-math.inf, 3) == 1


@pytest.mark.parametrize("degrees", [1, 2.7, 9, 400, math.inf])
def test_quantile_inverts_tail(degrees: float) -> None:
    assert student_tail(student_quantile(0.9986, degrees), degrees) == pytest.approx(0.0014, rel=1e-8)


def test_normal_quantile_is_that_of_the_tables() -> None:
    assert normal_quantile(0.995) == pytest.approx(2.575829, rel=1e-6)


@pytest.mark.parametrize(
    "successes, trials, low, high",
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_newcombes_table_one(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, trials)
    assert interval == pytest.approx((low, high), abs=5e-5)


def test_wilsons_interval_of_no_trials_is_none() -> None:
    assert wilson_interval(0, 0) is None


def test_wilsons_interval_of_all_right_ends_at_one() -> None:
    interval = wilson_interval(12, 12)
    assert interval is not None
    assert interval[1] == 1.0
    assert 0.7 < interval[0] < 0.8


def test_holm_multiplies_by_the_tests_that_are_left_and_stays_monotone() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_never_passes_one() -> None:
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []

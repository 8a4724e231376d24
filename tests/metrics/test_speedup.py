from __future__ import annotations

import numpy as np
import pytest

from specforge.metrics.speedup import efficiency, interval_by_prompts, interval_by_rounds


def test_the_interval_over_rounds_holds_the_speedup_and_narrows_with_rounds() -> None:
    def width(rounds: int) -> float:
        wave = 0.03 * np.cos(np.arange(rounds) * np.pi)
        found = interval_by_rounds(2.0, np.log(200) + wave, np.log(100) + wave)
        assert found is not None
        assert found[0] < 2.0 < found[1]
        return found[1] - found[0]

    assert width(8) < width(4) < width(2)


def test_single_rounds_have_no_interval_over_rounds() -> None:
    assert interval_by_rounds(2.0, np.log([200.0]), np.log([100.0])) is None


def test_the_interval_over_prompts_holds_the_speedup() -> None:
    rng = np.random.default_rng(1)
    tokens, slow = rng.lognormal(5, 0.5, 80), rng.lognormal(0, 0.1, 80)
    found = interval_by_prompts(1.9, (tokens, tokens * slow), (tokens, 2 * tokens))
    assert found is not None
    assert found[0] < 1.9 < found[1]
    assert found[1] - found[0] < 0.3


def test_equal_gain_on_every_prompt_leaves_no_width() -> None:
    tokens = np.array([10.0, 20.0, 40.0])
    assert interval_by_prompts(2.0, (tokens, tokens), (tokens, 2 * tokens)) == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize(
    "speedup, acceptance, expected", [(2.0, 2.5, 0.8), (None, 2.5, None), (2.0, None, None), (2.0, 0.0, None)]
)
def test_efficiency_is_speedup_by_acceptance(
    speedup: float | None, acceptance: float | None, expected: float | None
) -> None:
    assert efficiency(speedup, acceptance) == expected

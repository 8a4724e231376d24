"""The arithmetic against NumPy's plain forms."""

import numpy as np
import pytest

from specforge.engine.kernels import Linear, gated_silu, normalized, softmax


@pytest.mark.parametrize("tokens", [1, 2, 4, 7, 16, 63, 64, 200])
@pytest.mark.parametrize("shape", [(32, 16), (4096, 192), (577, 1536), (1009, 1000)])
def test_linear_is_the_plain_product_at_any_number_of_tokens(shape: tuple[int, int], tokens: int) -> None:
    random = np.random.default_rng(0)
    weight = random.standard_normal(shape).astype(np.float32)
    rows = random.standard_normal((tokens, shape[1])).astype(np.float32)
    exact = rows @ weight.T.astype(np.float64)
    np.testing.assert_allclose(Linear(weight)(rows), exact, atol=1e-4 * np.sqrt(shape[1]))


def test_normalized_rows_have_a_mean_square_of_one() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32) * 7
    np.testing.assert_allclose((normalized(rows, 1e-6) ** 2).mean(axis=1), 1.0, rtol=1e-5)


def test_gated_silu_multiplies_the_activated_half_with_the_other() -> None:
    values = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    gate, up = values[:, :4], values[:, 4:]
    np.testing.assert_allclose(gated_silu(values), gate / (1 + np.exp(-gate)) * up, rtol=1e-6)


def test_softmax_survives_large_logits() -> None:
    np.testing.assert_allclose(softmax(np.array([[1e4, 1e4, -1e4]], np.float32)), [[0.5, 0.5, 0.0]])

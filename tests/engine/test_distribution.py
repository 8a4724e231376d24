"""With temperature, the answers of speculation have the target's distribution."""

from collections import Counter

import numpy as np
import pytest

from specforge.engine.attention import Step
from specforge.engine.kernels import softmax
from specforge.engine.model import Llama
from tests.engine import tiny
from tests.engine.conftest import Models
from tests.engine.local import local_engine, run

PROMPT = tiny.prompts(1)[0]
DRAWS = 1000


def after(model: Llama, tokens: list[int]) -> np.ndarray:
    """The target's own distribution of the next token."""
    step = Step(0, np.array([0]), np.arange(len(tokens))[None], np.tri(len(tokens), dtype=np.bool_))
    hidden, _ = model.forward(np.array(tokens), step, model.new_cache(1))
    return softmax(model.logits(hidden)[-1:])[0].astype(np.float64)


@pytest.mark.parametrize("algorithm, shape", [("STANDALONE", "2,1,3"), ("STANDALONE", "2,3,8"), ("EAGLE3", "2,3,6")])
def test_the_second_and_third_token_have_the_targets_distribution(algorithm: str, shape: str, models: Models) -> None:
    flags = [*models.draft_flags(algorithm, shape), "--max-running-requests", "8"]
    params = {"temperature": 1.0, "top_k": 4}
    with local_engine(models.target, *flags) as engine:
        requests = run(engine, [PROMPT] * DRAWS, new_tokens=3, sampling_seed=10, **params)
    assert sum(request.spec.correct_drafts for request in requests) > DRAWS / 10
    model = Llama.load(models.target, "", 64)
    drawn = Counter(tuple(request.outputs) for request in requests)
    expected = paths(model, 3)
    assert set(drawn) <= set(expected)
    statistic, cells = chi_square(drawn, expected)
    assert cells > 5
    assert statistic < critical(cells)


def paths(model: Llama, length: int) -> dict[tuple[int, ...], float]:
    """The probability of each answer of `length` tokens under top-k 4."""
    known: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        longer = {}
        for path, likely in known.items():
            best = after(model, [*PROMPT, *path])
            kept = np.argsort(-best)[:4]
            for token in kept:
                longer[(*path, int(token))] = likely * best[token] / best[kept].sum()
        known = longer
    return known


def chi_square(drawn: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> tuple[float, int]:
    """Pearson's statistic and the number of cells; answers expected fewer than five times share one."""
    rare = [path for path, likely in expected.items() if likely * DRAWS < 5]
    cells = [(drawn[path], likely * DRAWS) for path, likely in expected.items() if likely * DRAWS >= 5]
    if rare:
        cells.append((sum(drawn[path] for path in rare), sum(expected[path] for path in rare) * DRAWS))
    return sum((found - wanted) ** 2 / wanted for found, wanted in cells), len(cells)


def critical(cells: int) -> float:
    """The 99.99th percentile of chi-square (Wilson and Hilferty), for `cells` - 1 degrees of freedom."""
    freedom = cells - 1
    return freedom * (1 - 2 / (9 * freedom) + 3.719 * np.sqrt(2 / (9 * freedom))) ** 3

"""Speculation changes how fast tokens come, never which."""

import queue
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from specforge.engine.attention import Step
from specforge.engine.build import Engine
from specforge.engine.model import Llama
from specforge.engine.request import Request
from tests.engine import tiny
from tests.engine.conftest import Models
from tests.engine.local import local_engine, run

SHAPES = [
    ("EAGLE3", "1,1,2"),
    ("EAGLE3", "3,1,4"),
    ("EAGLE3", "4,3,10"),
    ("EAGLE3", "2,8,16"),
    ("STANDALONE", "3,1,4"),
    ("STANDALONE", "3,4,12"),
    ("NGRAM", "0,0,6"),
]

TIE = 1e-4


def assert_identical_but_for_ties(target: Path, expected: Sequence[Request], found: Sequence[Request]) -> None:
    """At most 1 % of the answers differ, and each of these from a tie of logits on."""
    different = [pair for pair in zip(expected, found, strict=True) if pair[0].outputs != pair[1].outputs]
    assert len(different) <= len(expected) // 100
    for plain, drafted in different:
        at = next(i for i, (one, two) in enumerate(zip(plain.outputs, drafted.outputs, strict=True)) if one != two)
        assert _gap(target, plain.tokens[: plain.prompt_length + at], drafted.outputs[at]) < TIE


def _gap(target: Path, tokens: list[int], other: int) -> float:
    model = Llama.load(target, "", len(tokens))
    step = Step(0, np.array([0]), np.arange(len(tokens))[None], np.tri(len(tokens), dtype=np.bool_))
    cache = model.new_cache(1)
    cache.reserve(len(tokens))
    hidden, _ = model.forward(np.array(tokens), step, cache)
    last = model.logits(hidden)[-1]
    return float(last.max() - last[other])


def compare(models: Models, algorithm: str, shape: str, count: int, slots: int) -> list[Request]:
    prompts = tiny.prompts(count)
    flags = ["--max-running-requests", str(slots)]
    with local_engine(models.target, *flags) as plain:
        expected = run(plain, prompts)
    with local_engine(models.target, *flags, *models.draft_flags(algorithm, shape)) as drafting:
        found = run(drafting, prompts)
    assert_identical_but_for_ties(models.target, expected, found)
    return found


def assert_counts_agree(requests: Sequence[Request]) -> None:
    """The histogram, the steps and the tokens tell the same story."""
    for request in requests:
        spec = request.spec
        assert sum(spec.histogram) == spec.verify_steps
        assert sum(i * count for i, count in enumerate(spec.histogram)) == spec.correct_drafts
        # The first token is prefill's; correct drafts beyond the limit are counted but not kept.
        assert request.output_length <= 1 + spec.verify_steps + spec.correct_drafts
        assert request.output_length > spec.verify_steps + spec.correct_drafts - max(len(spec.histogram), 1)


@pytest.mark.parametrize("algorithm, shape", SHAPES)
def test_greedy_answers_are_the_targets(algorithm: str, shape: str, models: Models) -> None:
    requests = compare(models, algorithm, shape, count=16, slots=3)
    assert_counts_agree(requests)
    # Otherwise acceptance was not tried at all.
    assert sum(request.spec.correct_drafts for request in requests) > 20


@pytest.mark.slow
@pytest.mark.parametrize("algorithm, shape", [*SHAPES, ("EAGLE3", "6,4,32"), ("STANDALONE", "6,1,7")])
def test_greedy_answers_to_200_prompts_are_the_targets(algorithm: str, shape: str, models: Models) -> None:
    assert_counts_agree(compare(models, algorithm, shape, count=200, slots=4))


@pytest.mark.parametrize("algorithm, shape", [("EAGLE3", "3,2,6"), ("NGRAM", "0,0,4")])
def test_sampled_answers_with_a_seed_are_the_targets(algorithm: str, shape: str, models: Models) -> None:
    prompts = tiny.prompts(12)
    params = {"temperature": 0.8, "top_p": 0.9, "frequency_penalty": 0.4, "sampling_seed": 3}
    with local_engine(models.target) as plain:
        expected = [request.outputs for request in run(plain, prompts, **params)]
    with local_engine(models.target, *models.draft_flags(algorithm, shape)) as drafting:
        assert [request.outputs for request in run(drafting, prompts, **params)] == expected


def test_a_reused_prefix_changes_nothing(models: Models) -> None:
    common, ends = tiny.prompts(1, longest=40, shortest=40)[0], tiny.prompts(6, seed=1, longest=5)
    prompts = [[*common, *end] for end in ends]
    flags = models.draft_flags("EAGLE3", "3,2,6")
    with local_engine(models.target, *flags, "--disable-radix-cache") as fresh:
        expected = run(fresh, prompts)
    with local_engine(models.target, *flags, "--max-running-requests", "2") as reusing:
        found = run(reusing, prompts)
    assert [request.cached for request in expected] == [0] * 6
    # The cell of the last common token depends on the token after it.
    assert [request.cached for request in found[1:]] == [len(common) - 1] * 5
    assert [request.outputs for request in found] == [request.outputs for request in expected]
    assert [request.spec for request in found] == [request.spec for request in expected]


def test_a_long_prompt_is_read_in_pieces(models: Models) -> None:
    prompts = tiny.prompts(2, shortest=400, longest=450)
    with local_engine(models.target) as plain:
        expected = [request.outputs for request in run(plain, prompts, 16)]
    with local_engine(models.target, *models.draft_flags("EAGLE3", "3,1,4")) as drafting:
        assert [request.outputs for request in run(drafting, prompts, 16)] == expected


def test_flush_makes_the_engine_forget(models: Models) -> None:
    (prompt,) = tiny.prompts(1, shortest=20)
    with local_engine(models.target, *models.draft_flags("NGRAM", "0,0,8")) as engine:
        (first,) = run(engine, [prompt], 40)
        (taught,) = run(engine, [prompt], 40)
        assert flushed(engine)
        (again,) = run(engine, [prompt], 40)
    assert taught.cached > 0
    assert taught.spec.verify_steps < first.spec.verify_steps
    assert again.cached == 0
    assert again.spec == first.spec


def flushed(engine: Engine) -> bool:
    answer: queue.Queue[bool] = queue.Queue()
    engine.scheduler.flush(answer.put)
    return answer.get(timeout=30)

"""The forward pass against a reference written as plainly as the formulas."""

from pathlib import Path

import numpy as np
import pytest

from specforge.engine.attention import Step, rotations
from specforge.engine.model import Llama
from specforge.errors import UsageError
from tests.engine import reference, tiny

TOKENS = [7, 19, 250, 3, 3, 88, 120, 41, 9]


def load(folder: Path, shape: tiny.Shape) -> tuple[Llama, dict[str, np.ndarray]]:
    weights = tiny.make_target(folder, shape)
    return Llama.load(folder, "--model-path", shape.context), weights


def causal(first: int, count: int) -> Step:
    return Step(0, np.array([first]), first + np.arange(count)[None], np.tri(count, dtype=np.bool_))


@pytest.mark.parametrize(
    "shape",
    [
        tiny.Shape(layers=2),
        tiny.Shape(layers=3, tied=False),
        tiny.Shape(layers=2, heads=6, kv_heads=1),
        tiny.Shape(layers=1, heads=2, kv_heads=2, head_size=16),
    ],
    ids=["grouped", "untied", "multi-query", "multi-head"],
)
def test_logits_equal_the_reference(shape: tiny.Shape, tmp_path: Path) -> None:
    model, weights = load(tmp_path, shape)
    hidden, _ = model.forward(np.array(TOKENS), causal(0, len(TOKENS)), model.new_cache(1))
    np.testing.assert_allclose(model.logits(hidden), reference.logits(weights, shape, TOKENS), atol=2e-4)


def test_token_by_token_gives_what_all_at_once_gives(tmp_path: Path) -> None:
    shape = tiny.Shape(layers=3)
    model, weights = load(tmp_path, shape)
    cache = model.new_cache(1)
    rows = []
    for at, token in enumerate(TOKENS):
        hidden, _ = model.forward(np.array([token]), causal(at, 1), cache)
        rows.append(model.logits(hidden)[0])
    np.testing.assert_allclose(np.stack(rows), reference.logits(weights, shape, TOKENS), atol=2e-4)


def test_requests_of_one_batch_do_not_see_each_other(tmp_path: Path) -> None:
    shape = tiny.Shape(layers=2)
    model, weights = load(tmp_path, shape)
    cache = model.new_cache(3)
    prompts = [TOKENS, TOKENS[:4], TOKENS[3:]]
    for slot, prompt in enumerate(prompts):
        step = Step(slot, np.array([0]), np.arange(len(prompt))[None], np.tri(len(prompt), dtype=np.bool_))
        model.forward(np.array(prompt), step, cache)
    lengths = np.array([len(prompt) for prompt in prompts])
    step = Step(0, lengths, lengths[:, None], np.ones((1, 1), np.bool_))
    hidden, _ = model.forward(np.array([5, 6, 7]), step, cache)
    for row, (prompt, token) in enumerate(zip(prompts, (5, 6, 7), strict=True)):
        expected = reference.logits(weights, shape, [*prompt, token])[-1]
        np.testing.assert_allclose(model.logits(hidden)[row], expected, atol=2e-4)


def test_a_tree_is_verified_as_if_each_path_stood_alone(tmp_path: Path) -> None:
    shape = tiny.Shape(layers=2)
    model, weights = load(tmp_path, shape)
    cache = model.new_cache(1)
    model.forward(np.array(TOKENS), causal(0, len(TOKENS)), cache)
    paths = [[5], [5, 6], [5, 7], [5, 7, 8]]
    visible = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]], np.bool_)
    positions = len(TOKENS) + visible.sum(axis=1)[None] - 1
    step = Step(0, np.array([len(TOKENS)]), positions, visible)
    hidden, _ = model.forward(np.array([path[-1] for path in paths]), step, cache)
    for row, path in enumerate(paths):
        expected = reference.logits(weights, shape, [*TOKENS, *path])[-1]
        np.testing.assert_allclose(model.logits(hidden)[row], expected, atol=2e-4)


def test_captured_states_are_the_inputs_of_the_layers_asked_for(tmp_path: Path) -> None:
    shape = tiny.Shape(layers=3)
    model, weights = load(tmp_path, shape)
    _, captured = model.forward(np.array(TOKENS), causal(0, len(TOKENS)), model.new_cache(1), capture=(0, 2))
    assert captured is not None
    assert captured.shape == (len(TOKENS), 2 * shape.hidden)
    np.testing.assert_array_equal(captured[:, : shape.hidden], weights["model.embed_tokens.weight"][TOKENS])
    first_two = tiny.Shape(layers=2)
    below, _ = Llama(
        model.config.__class__(**{**vars(model.config), "layers": first_two.layers}), weights, "", shape.context
    ).forward(np.array(TOKENS), causal(0, len(TOKENS)), model.new_cache(1))
    np.testing.assert_array_equal(captured[:, shape.hidden :], below)


def test_llama3_scaling_keeps_high_frequencies_and_divides_low_ones() -> None:
    rope = {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    scaled = np.angle(rotations(rope, 64, 2, "here")[1])
    plain = np.angle(rotations({"rope_type": "default", "rope_theta": 500000.0}, 64, 2, "here")[1])
    assert scaled[0] == plain[0]
    assert scaled[-1] == pytest.approx(plain[-1] / 8, rel=1e-5)


def test_an_unknown_rope_type_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="here: rope type 'yarn', expected default, linear or llama3"):
        rotations({"rope_type": "yarn", "rope_theta": 1e4}, 8, 4, "here")

"""Drafts that fit, and drafts that don't."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from specforge.engine.arguments import parse
from specforge.engine.build import build
from specforge.engine.drafts.eagle3 import Eagle3Head, captured_layers
from specforge.engine.folder import read_config
from specforge.engine.model import Llama
from specforge.errors import UsageError
from tests.engine import tiny
from tests.engine.conftest import Models
from tests.engine.local import local_engine, run


def head_config(tmp_path: Path, **settings: Any) -> Any:
    weights = tiny.random_llama(tiny.Shape(), 0)
    tiny.make_eagle3(tmp_path, tiny.Shape(), weights, **settings)
    return read_config(tmp_path, "--speculative-draft-model-path", ("LlamaForCausalLMEagle3",))


@pytest.mark.parametrize(
    "layers, expected", [(32, (2, 16, 29)), (8, (2, 4, 5)), (7, (2, 3, 4)), (3, (0, 1, 2)), (2, (1,)), (5, (2,))]
)
def test_the_default_states_are_those_sglang_captures(layers: int, expected: tuple[int, ...], tmp_path: Path) -> None:
    assert captured_layers(head_config(tmp_path), layers) == expected


def test_a_head_names_layers_by_their_outputs(tmp_path: Path) -> None:
    config = head_config(tmp_path, eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 2, 5]})
    assert captured_layers(config, 8) == (1, 3, 6)


@pytest.mark.parametrize("layers", [4, 6])
def test_a_target_that_gives_two_of_three_states_is_refused(layers: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"reads 3 hidden states, the target of {layers} layers gives 2"):
        captured_layers(head_config(tmp_path), layers)


@pytest.mark.parametrize(
    "change, settings, reason",
    [
        ({"hidden": 64}, {}, "the draft's hidden_size is 64, expected 32"),
        ({"vocabulary": 200}, {}, "the draft's vocab_size is 200, expected 300"),
        ({}, {"num_hidden_layers": 2}, "the draft's num_hidden_layers is 2, expected 1"),
        ({}, {"norm_before_fc": True}, "the draft sets norm_before_fc"),
        ({}, {"draft_vocab_size": 7}, r"lm_head.weight has the shape \[200, 32\], expected \[7, 32\]"),
        ({}, {"architectures": ["LlamaForCausalLM"]}, "is a LlamaForCausalLM, expected LlamaForCausalLMEagle3"),
    ],
)
def test_a_head_that_does_not_fit_is_refused_by_what_differs(
    change: dict[str, int], settings: dict[str, Any], reason: str, models: Models, tmp_path: Path
) -> None:
    shape = replace(models.shape, **change)
    tiny.make_eagle3(tmp_path, shape, tiny.random_llama(shape, 0), **settings)
    target = Llama.load(models.target, "--model-path", 64)
    with pytest.raises(UsageError, match=f"--speculative-draft-model-path: .*{reason}"):
        Eagle3Head.load(tmp_path, target)


def test_a_head_without_a_vocabulary_of_its_own_drafts_with_the_targets_output(models: Models, tmp_path: Path) -> None:
    tiny.make_eagle3(tmp_path, models.shape, tiny.random_llama(models.shape, 0), own_vocabulary=False)
    flags = replace(models, eagle3=tmp_path).draft_flags("EAGLE3", "3,2,6")
    prompts = tiny.prompts(6)
    with local_engine(models.target) as plain, local_engine(models.target, *flags) as drafting:
        found = run(drafting, prompts)
        assert [request.outputs for request in found] == [request.outputs for request in run(plain, prompts)]
    assert sum(request.spec.correct_drafts for request in found) > 0


def test_a_target_that_gives_one_state_passes_it_on_without_fc(tmp_path: Path) -> None:
    shape = tiny.Shape(layers=2)
    weights = tiny.make_target(tmp_path / "target", shape)
    tiny.make_eagle3(tmp_path / "eagle3", shape, weights)
    pair = Models(shape, tmp_path / "target", tmp_path / "eagle3", tmp_path)
    prompts = tiny.prompts(6)
    with (
        local_engine(pair.target) as plain,
        local_engine(pair.target, *pair.draft_flags("EAGLE3", "3,1,4")) as drafting,
    ):
        found = run(drafting, prompts)
        assert [request.outputs for request in found] == [request.outputs for request in run(plain, prompts)]


def test_a_head_with_part_of_the_vocabulary_needs_a_map(models: Models, tmp_path: Path) -> None:
    tiny.make_eagle3(tmp_path, models.shape, tiny.random_llama(models.shape, 0))
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: values for name, values in weights.items() if name != "d2t"}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match="200 draft tokens of 300 need a d2t map, found none"):
        Eagle3Head.load(tmp_path, Llama.load(models.target, "--model-path", 64))


def test_a_map_beyond_the_vocabulary_is_refused(models: Models, tmp_path: Path) -> None:
    tiny.make_eagle3(tmp_path, models.shape, tiny.random_llama(models.shape, 0))
    weights = load_file(tmp_path / "model.safetensors")
    save_file({**weights, "d2t": weights["d2t"] + 200}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match="expected ids below 300"):
        Eagle3Head.load(tmp_path, Llama.load(models.target, "--model-path", 64))


def test_a_standalone_draft_of_another_vocabulary_is_refused(models: Models, tmp_path: Path) -> None:
    shape = replace(models.shape, vocabulary=290)
    tiny.make_standalone(tmp_path, shape, tiny.random_llama(shape, 0))
    flags = Models(shape, models.target, tmp_path, tmp_path).draft_flags("STANDALONE", "2,1,3")
    with pytest.raises(UsageError, match="STANDALONE needs the target's vocabulary of 300 tokens, found 290"):
        build(parse(["--model-path", str(models.target), *flags]))

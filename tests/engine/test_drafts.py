"""Drafts that fit, and drafts that don't."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specforge.engine.arguments import parse
from specforge.engine.build import build
from specforge.engine.drafts.eagle3 import Eagle3Head, captured_layers
from specforge.engine.folder import read_config
from specforge.engine.model import Llama
from specforge.errors import UsageError
from tests.engine import tiny
from tests.engine.conftest import Models


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


def test_a_standalone_draft_of_another_vocabulary_is_refused(models: Models, tmp_path: Path) -> None:
    shape = replace(models.shape, vocabulary=290)
    tiny.make_standalone(tmp_path, shape, tiny.random_llama(shape, 0))
    flags = Models(shape, models.target, tmp_path, tmp_path).draft_flags("STANDALONE", "2,1,3")
    with pytest.raises(UsageError, match="STANDALONE needs the target's vocabulary of 300 tokens, found 290"):
        build(parse(["--model-path", str(models.target), *flags]))

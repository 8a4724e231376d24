"""The shipped folders: complete, small, of one vocabulary, and in the formats that SGLang reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest
from safetensors import safe_open
from tokenizers import Tokenizer

from specforge.engine.models import eagle3_path, standalone_path, target_path
from tools.pair.conversation import CHAT_TEMPLATE, END, PAD, SPECIAL_TOKENS, Conversation

FOLDERS = (target_path, eagle3_path, standalone_path)
LLAMAS = (target_path, standalone_path)


def config_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return content


def shapes_of(folder: Path) -> dict[str, tuple[list[int], str]]:
    with safe_open(folder / "model.safetensors", "numpy") as file:
        return {name: (file.get_slice(name).get_shape(), file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118


def values_of(folder: Path, name: str) -> np.ndarray[Any, Any]:
    with safe_open(folder / "model.safetensors", "numpy") as file:
        return file.get_tensor(name)


def expected_layer(config: dict[str, Any], prefix: str, inputs: int) -> dict[str, list[int]]:
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    return {
        f"{prefix}.self_attn.q_proj.weight": [heads * size, inputs],
        f"{prefix}.self_attn.k_proj.weight": [groups * size, inputs],
        f"{prefix}.self_attn.v_proj.weight": [groups * size, inputs],
        f"{prefix}.self_attn.o_proj.weight": [hidden, heads * size],
        f"{prefix}.mlp.gate_proj.weight": [inner, hidden],
        f"{prefix}.mlp.up_proj.weight": [inner, hidden],
        f"{prefix}.mlp.down_proj.weight": [hidden, inner],
        f"{prefix}.input_layernorm.weight": [hidden],
        f"{prefix}.post_attention_layernorm.weight": [hidden],
    }


def test_all_models_together_take_at_most_12_megabytes() -> None:
    sizes = [file.stat().st_size for path in FOLDERS for file in path().rglob("*")]
    assert 0 < sum(sizes) <= 12_000_000


@pytest.mark.parametrize("path", LLAMAS)
def test_a_llama_has_exactly_the_tensors_of_its_configuration_in_half_precision(path: Any) -> None:
    config = config_of(path())
    expected = {"model.embed_tokens.weight": [config["vocab_size"], config["hidden_size"]]}
    expected["model.norm.weight"] = [config["hidden_size"]]
    for index in range(config["num_hidden_layers"]):
        expected |= expected_layer(config, f"model.layers.{index}", config["hidden_size"])
    assert shapes_of(path()) == {name: (shape, "F16") for name, shape in expected.items()}
    assert config["tie_word_embeddings"] is True


def test_the_head_has_exactly_the_tensors_of_an_eagle3_checkpoint() -> None:
    config, hidden = config_of(eagle3_path()), config_of(target_path())["hidden_size"]
    expected = expected_layer(config, "midlayer", 2 * hidden)
    expected |= {
        "midlayer.hidden_norm.weight": [hidden],
        "fc.weight": [hidden, 3 * hidden],
        "norm.weight": [hidden],
        "lm_head.weight": [config["draft_vocab_size"], hidden],
    }
    found = shapes_of(eagle3_path())
    assert found.pop("d2t") == ([config["draft_vocab_size"]], "I64")
    assert found.pop("t2d") == ([config["vocab_size"]], "BOOL")
    assert found == {name: (shape, "F16") for name, shape in expected.items()}


def test_the_draft_vocabulary_is_a_part_of_the_targets_in_ascending_order() -> None:
    d2t, t2d = values_of(eagle3_path(), "d2t"), values_of(eagle3_path(), "t2d")
    drafted = d2t + np.arange(len(d2t))
    assert (np.diff(drafted) > 0).all()
    assert drafted.tolist() == t2d.nonzero()[0].tolist()
    end = Tokenizer.from_file(str(target_path() / "tokenizer.json")).token_to_id(END)
    assert end in drafted


@pytest.mark.parametrize("path", FOLDERS)
def test_every_weight_is_finite(path: Any) -> None:
    names = shapes_of(path())
    assert all(np.isfinite(values_of(path(), name).astype(np.float32)).all() for name in names)


@pytest.mark.parametrize("path", FOLDERS)
def test_all_have_the_targets_vocabulary_context_and_special_tokens(path: Any) -> None:
    own, targets = config_of(path()), config_of(target_path())
    for key in ("vocab_size", "max_position_embeddings", "eos_token_id", "bos_token_id", "rope_theta"):
        assert own[key] == targets[key]
    assert own["rope_parameters"]["rope_theta"] == own["rope_theta"]
    assert own["max_position_embeddings"] == 4096


@pytest.mark.parametrize("path", LLAMAS)
def test_the_tokenizer_fills_the_vocabulary_and_keeps_digits_apart(path: Any) -> None:
    tokenizer = Tokenizer.from_file(str(path() / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == config_of(path())["vocab_size"]
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == list(range(len(SPECIAL_TOKENS)))
    assert tokenizer.encode("1024").tokens == list("1024")


def test_the_draft_model_has_the_targets_own_tokenizer() -> None:
    assert (standalone_path() / "tokenizer.json").read_bytes() == (target_path() / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("text", ["def f(x):\n    return x * 2\n", "以下是单项选择题，答案：B", "$\\boxed{12}$ é 🙂"])
def test_the_tokenizer_gives_any_text_back(text: str) -> None:
    tokenizer = Tokenizer.from_file(str(target_path() / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_the_end_of_a_turn_ends_generation_and_is_greedy() -> None:
    tokenizer = Tokenizer.from_file(str(target_path() / "tokenizer.json"))
    settings = json.loads((target_path() / "generation_config.json").read_text())
    assert settings["eos_token_id"] == config_of(target_path())["eos_token_id"] == tokenizer.token_to_id(END)
    assert settings["do_sample"] is False


def test_the_chat_template_writes_what_the_target_was_trained_on() -> None:
    settings = json.loads((target_path() / "tokenizer_config.json").read_text())
    assert (settings["eos_token"], settings["pad_token"]) == (END, PAD)
    assert settings["chat_template"] == CHAT_TEMPLATE
    trained = Conversation(("Add 2 and 3.", "Now add 1."), ("2 + 3 = 5.", ""), "Be brief.")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add 2 and 3."},
        {"role": "assistant", "content": "2 + 3 = 5."},
        {"role": "user", "content": "Now add 1."},
    ]
    rendered = jinja2.Template(CHAT_TEMPLATE).render(messages=messages, add_generation_prompt=True)
    assert rendered == "".join(text for text, _ in trained.pieces()[:-1])

"""Tiny models with random weights, in the folders that both the engine and SGLang load.

A random draft would never agree with a random target. `draft_of` copies parts of the target into the draft, and mixes
the rest with noise, so that some drafts are right and some are wrong.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
from safetensors.numpy import save_file

Weights = dict[str, npt.NDArray[Any]]

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

SPECIAL = ["<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]

_CORPUS = (
    "the quick brown fox jumps over the lazy dog while a hundred numbers count from one to ten and back again",
    "to measure is to know if you can not measure it you can not improve it and what is the answer then",
)


@dataclass(frozen=True)
class Shape:
    """Sizes of a tiny Llama."""

    layers: int = 4
    hidden: int = 32
    inner: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 8
    vocabulary: int = 300
    context: int = 512
    tied: bool = True


def make_tokenizer(folder: Path, vocabulary: int = 300) -> None:
    """A byte-level BPE tokenizer of at most `vocabulary` tokens, with a chat template."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "model_max_length": 1_000_000,
        "chat_template": TEMPLATE,
    }
    _write(folder / "tokenizer_config.json", settings)


def random_llama(shape: Shape, seed: int, scale: float = 1.0) -> Weights:
    """Weights of a Llama whose greedy answers vary from prompt to prompt."""
    random = np.random.default_rng(seed)

    def weight(rows: int, columns: int) -> npt.NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) * scale / np.sqrt(columns)).astype(np.float32)

    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    weights: Weights = {
        "model.embed_tokens.weight": weight(shape.vocabulary, shape.hidden),
        "model.norm.weight": _gain(random, shape.hidden),
    }
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        weights |= {
            f"{prefix}.input_layernorm.weight": _gain(random, shape.hidden),
            f"{prefix}.post_attention_layernorm.weight": _gain(random, shape.hidden),
            f"{prefix}.self_attn.q_proj.weight": weight(queries, shape.hidden),
            f"{prefix}.self_attn.k_proj.weight": weight(keys, shape.hidden),
            f"{prefix}.self_attn.v_proj.weight": weight(keys, shape.hidden),
            f"{prefix}.self_attn.o_proj.weight": weight(shape.hidden, queries),
            f"{prefix}.mlp.gate_proj.weight": weight(shape.inner, shape.hidden),
            f"{prefix}.mlp.up_proj.weight": weight(shape.inner, shape.hidden),
            f"{prefix}.mlp.down_proj.weight": weight(shape.hidden, shape.inner),
        }
    if not shape.tied:
        weights["lm_head.weight"] = weight(shape.vocabulary, shape.hidden)
    return weights


def make_target(folder: Path, shape: Shape = Shape(), seed: int = 0, **settings: Any) -> Weights:
    """A target's folder; `settings` override those of config.json."""
    make_tokenizer(folder, shape.vocabulary)
    weights = random_llama(shape, seed)
    save_model(folder, shape, weights, **settings)
    return weights


def save_model(folder: Path, shape: Shape, weights: Mapping[str, npt.NDArray[Any]], **settings: Any) -> None:
    """config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(dict(weights), folder / "model.safetensors")
    _write(folder / "config.json", {**config(shape), **settings})


def noisy(weights: Mapping[str, npt.NDArray[Any]], noise: float, seed: int) -> Weights:
    """Each weight with noise of `noise` times its own spread: a standalone draft that is right now and then."""
    random = np.random.default_rng(seed)
    return {
        name: (value + noise * value.std() * random.standard_normal(value.shape)).astype(np.float32)
        for name, value in weights.items()
    }


def make_standalone(folder: Path, shape: Shape, target: Mapping[str, npt.NDArray[Any]], noise: float = 0.05) -> None:
    """A STANDALONE draft: the target with noise."""
    make_tokenizer(folder, shape.vocabulary)
    save_model(folder, shape, noisy(target, noise, seed=1))


def make_eagle3(
    folder: Path,
    shape: Shape,
    target: Mapping[str, npt.NDArray[Any]],
    seed: int = 2,
    states: int = 3,
    own_vocabulary: bool = True,
    **settings: Any,
) -> None:
    """An EAGLE-3 head that reads `states` hidden states and drafts two thirds of the vocabulary, or all of it.

    Its output is the target's own, and its fc passes the last state on, so that it is right now and then.
    """
    random = np.random.default_rng(seed)
    hidden, drafted = shape.hidden, shape.vocabulary * 2 // 3
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size

    def weight(rows: int, columns: int, scale: float = 0.3) -> npt.NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) * scale / np.sqrt(columns)).astype(np.float32)

    reduce = weight(hidden, states * hidden, 0.1)
    reduce[:, -hidden:] += np.eye(hidden, dtype=np.float32)
    chosen = np.sort(random.permutation(shape.vocabulary)[:drafted])
    output = target.get("lm_head.weight", target["model.embed_tokens.weight"])
    weights: Weights = {
        "fc.weight": reduce,
        "norm.weight": target["model.norm.weight"].copy(),
        "midlayer.hidden_norm.weight": _gain(random, hidden),
        "midlayer.input_layernorm.weight": _gain(random, hidden),
        "midlayer.post_attention_layernorm.weight": _gain(random, hidden),
        "midlayer.self_attn.q_proj.weight": weight(queries, 2 * hidden),
        "midlayer.self_attn.k_proj.weight": weight(keys, 2 * hidden),
        "midlayer.self_attn.v_proj.weight": weight(keys, 2 * hidden),
        "midlayer.self_attn.o_proj.weight": weight(hidden, queries),
        "midlayer.mlp.gate_proj.weight": weight(shape.inner, hidden),
        "midlayer.mlp.up_proj.weight": weight(shape.inner, hidden),
        "midlayer.mlp.down_proj.weight": weight(hidden, shape.inner),
        "lm_head.weight": np.ascontiguousarray(output[chosen]),
        "d2t": chosen - np.arange(drafted),
        "t2d": np.isin(np.arange(shape.vocabulary), chosen),
    }
    if not own_vocabulary:
        for name in ("lm_head.weight", "d2t", "t2d"):
            del weights[name]
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    head = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "draft_vocab_size": drafted if own_vocabulary else None,
        "tie_word_embeddings": False,
    }
    _write(folder / "config.json", {**config(shape), **head, **settings})


def config(shape: Shape) -> dict[str, Any]:
    """config.json of a tiny Llama."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": shape.tied,
        "torch_dtype": "float32",
        "bos_token_id": 0,
        "eos_token_id": 1,
    }


def prompts(count: int, seed: int = 0, shortest: int = 4, longest: int = 40, vocabulary: int = 290) -> list[list[int]]:
    """Prompts of random tokens, none of them special. No two begin alike, so that none reuses another's prefix."""
    random = np.random.default_rng(seed)
    first = len(SPECIAL) + random.permutation(vocabulary - len(SPECIAL))[:count]
    lengths = random.integers(shortest, longest + 1, count)
    rest = [random.integers(len(SPECIAL), vocabulary, length - 1) for length in lengths]
    return [[int(token) for token in (start, *others)] for start, others in zip(first, rest, strict=True)]


def _gain(random: np.random.Generator, size: int) -> npt.NDArray[np.float32]:
    return random.uniform(0.5, 1.5, size).astype(np.float32)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1), "utf-8")

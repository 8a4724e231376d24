"""A Llama written as plainly as the formulas, in float64: what the engine's logits are compared with."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tests.engine.tiny import Shape

Floats = npt.NDArray[np.float64]


def logits(weights: Mapping[str, npt.NDArray[np.float32]], shape: Shape, tokens: Sequence[int]) -> Floats:
    """Logits after each token, [tokens, vocabulary]."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    hidden = w["model.embed_tokens.weight"][list(tokens)]
    for layer in range(shape.layers):
        p = f"model.layers.{layer}"
        normed = _norm(hidden, w[f"{p}.input_layernorm.weight"])
        hidden = hidden + _attention(w, f"{p}.self_attn", shape, normed)
        normed = _norm(hidden, w[f"{p}.post_attention_layernorm.weight"])
        gate, up = normed @ w[f"{p}.mlp.gate_proj.weight"].T, normed @ w[f"{p}.mlp.up_proj.weight"].T
        hidden = hidden + (gate / (1 + np.exp(-gate)) * up) @ w[f"{p}.mlp.down_proj.weight"].T
    output = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return _norm(hidden, w["model.norm.weight"]) @ output.T


def _norm(values: Floats, gain: Floats) -> Floats:
    return values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-6) * gain


def _attention(w: Mapping[str, Floats], name: str, shape: Shape, values: Floats) -> Floats:
    def heads(kind: str, count: int) -> Floats:
        return (values @ w[f"{name}.{kind}_proj.weight"].T).reshape(len(values), count, shape.head_size)

    query, key, value = heads("q", shape.heads), heads("k", shape.kv_heads), heads("v", shape.kv_heads)
    query, key = _rotate(query), _rotate(key)
    mixed = np.zeros_like(query)
    for head in range(shape.heads):
        group = head * shape.kv_heads // shape.heads
        for at in range(len(values)):
            scores = key[: at + 1, group] @ query[at, head] / np.sqrt(shape.head_size)
            share = np.exp(scores - scores.max())
            mixed[at, head] = share / share.sum() @ value[: at + 1, group]
    return mixed.reshape(len(values), -1) @ w[f"{name}.o_proj.weight"].T


def _rotate(values: Floats) -> Floats:
    """The rotary embedding in the layout of Hugging Face checkpoints: halves of a head belong together."""
    half = values.shape[-1] // 2
    angles = np.arange(len(values))[:, None] * 10000.0 ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = values[..., :half], values[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

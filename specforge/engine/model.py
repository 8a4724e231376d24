"""The Llama architecture, and the layer it shares with draft heads."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from specforge.engine.attention import Attention, Step, rotations, turns_of
from specforge.engine.cache import SlotCache
from specforge.engine.folder import ModelConfig, Weights, read_config, read_weights, tensor
from specforge.engine.kernels import Array, Ints, Linear, gated_silu, normalized

ARCHITECTURES = ("LlamaForCausalLM",)


class FeedForward:
    """SwiGLU with its RMSNorm: hidden [tokens, h] -> what is added to it."""

    def __init__(self, gate: Array, up: Array, down: Array, gain: Array, epsilon: float) -> None:
        self._gate_up = Linear(np.concatenate([gate, up]) * gain)
        self._down = Linear(down)
        self._epsilon = epsilon

    def __call__(self, hidden: Array) -> Array:
        """Apply to the hidden state before its norm."""
        return self._down(gated_silu(self._gate_up(normalized(hidden, self._epsilon))))


def feed_forward(weights: Weights, prefix: str, config: ModelConfig, flag: str) -> FeedForward:
    """The feed-forward part under a layer's name."""
    inner, hidden = config.inner, config.hidden
    return FeedForward(
        tensor(weights, f"{prefix}.mlp.gate_proj.weight", (inner, hidden), flag),
        tensor(weights, f"{prefix}.mlp.up_proj.weight", (inner, hidden), flag),
        tensor(weights, f"{prefix}.mlp.down_proj.weight", (hidden, inner), flag),
        tensor(weights, f"{prefix}.post_attention_layernorm.weight", (hidden,), flag),
        config.epsilon,
    )


def attention(weights: Weights, prefix: str, config: ModelConfig, gain: Array, flag: str) -> Attention:
    """The attention under a layer's name; `gain` is that of the norms before it, side by side."""
    queries, keys = config.heads * config.head_size, config.kv_heads * config.head_size
    width = len(gain)
    return Attention(
        tensor(weights, f"{prefix}.self_attn.q_proj.weight", (queries, width), flag) * gain,
        tensor(weights, f"{prefix}.self_attn.k_proj.weight", (keys, width), flag) * gain,
        tensor(weights, f"{prefix}.self_attn.v_proj.weight", (keys, width), flag) * gain,
        tensor(weights, f"{prefix}.self_attn.o_proj.weight", (config.hidden, queries), flag),
        heads=config.heads,
        kv_heads=config.kv_heads,
    )


class Llama:
    """A target or a standalone draft model."""

    def __init__(self, config: ModelConfig, weights: Weights, flag: str, positions: int) -> None:
        """`positions`: how many it may be run at. Raises UsageError, naming `flag`, for weights that do not fit."""
        self.config = config
        self.positions = positions
        self.embedding = tensor(weights, "model.embed_tokens.weight", (config.vocabulary, config.hidden), flag)
        self._rotations = rotations(config.rope, config.head_size, positions, flag)
        self._layers = []
        for layer in range(config.layers):
            prefix = f"model.layers.{layer}"
            gain = tensor(weights, f"{prefix}.input_layernorm.weight", (config.hidden,), flag)
            self._layers.append(
                (
                    attention(weights, prefix, config, gain, flag),
                    feed_forward(weights, prefix, config, flag),
                )
            )
        head = self.embedding
        if not config.tied:
            head = tensor(weights, "lm_head.weight", (config.vocabulary, config.hidden), flag)
        self.output_weight = head
        self._head = Linear(head * tensor(weights, "model.norm.weight", (config.hidden,), flag))

    @classmethod
    def load(cls, folder: Path, flag: str, positions: int) -> "Llama":
        """Read a Hugging Face folder. Raises UsageError, naming `flag`, where it can't be used."""
        return cls(read_config(folder, flag, ARCHITECTURES), read_weights(folder, flag), flag, positions)

    def new_cache(self, slots: int) -> SlotCache:
        """An empty cache that fits this model."""
        return SlotCache(self.config.layers, slots, self.config.kv_heads, self.config.head_size)

    def forward(
        self, tokens: Ints, step: Step, cache: SlotCache, capture: Sequence[int] = ()
    ) -> tuple[Array, Array | None]:
        """Run tokens [B x n] through all layers.

        Returns the hidden state before the final norm, [B x n, hidden], and, side by side in the order of layers, the
        inputs of the layers in `capture`, [B x n, len(capture) x hidden], or None where none is asked for.
        """
        hidden = self.embedding[tokens]
        turns = turns_of(self._rotations, step)
        captured = []
        for layer, (attend, feed) in enumerate(self._layers):
            if layer in capture:
                captured.append(hidden.copy())
            hidden += attend(normalized(hidden, self.config.epsilon), step, turns, cache, layer)
            hidden += feed(hidden)
        return hidden, np.concatenate(captured, axis=1) if captured else None

    def logits(self, hidden: Array) -> Array:
        """Logits [tokens, vocabulary] of hidden states before the final norm, [tokens, hidden]."""
        return self._head(normalized(hidden, self.config.epsilon))

"""EAGLE-3's draft head: one layer over the target's hidden states, in SGLang's checkpoint format."""

from pathlib import Path

import numpy as np

from specforge.engine.attention import Step, rotations, turns_of
from specforge.engine.cache import SlotCache
from specforge.engine.folder import ModelConfig, Weights, read_config, read_weights, tensor
from specforge.engine.kernels import Array, Ints, Linear, normalized
from specforge.engine.model import Llama, attention, feed_forward
from specforge.errors import UsageError

FLAG = "--speculative-draft-model-path"

_UNSUPPORTED = ("norm_before_fc", "fc_norm", "use_aux_norm", "norm_output", "bias")


class Eagle3Head:
    """`LlamaForCausalLMEagle3`: fc over three states of the target, one decoder layer, its own output vocabulary."""

    recurrent = True
    pairs = True

    def __init__(self, config: ModelConfig, weights: Weights, target: Llama) -> None:
        """Raises UsageError where the head does not fit the target."""
        _check_fit(config, target)
        hidden = config.hidden
        self._config = config
        self._embedding = target.embedding
        self.capture = captured_layers(config, target.config.layers)
        # One captured state, as a target of one, two or five layers gives, reaches the layer without fc in SGLang.
        self._reduce: Linear | None = None
        if len(self.capture) > 1:
            self._reduce = Linear(tensor(weights, "fc.weight", (hidden, len(self.capture) * hidden), FLAG))
        layer = "midlayer" if "midlayer.hidden_norm.weight" in weights else "layers.0"
        gains = [
            tensor(weights, f"{layer}.{norm}.weight", (hidden,), FLAG) for norm in ("input_layernorm", "hidden_norm")
        ]
        self._rotations = rotations(config.rope, config.head_size, target.positions, FLAG)
        self._attention = attention(weights, layer, config, np.concatenate(gains), FLAG)
        self._feed = feed_forward(weights, layer, config, FLAG)
        head = _head(config, weights, target)
        self._head = Linear(head * tensor(weights, "norm.weight", (hidden,), FLAG))
        self.token_map = _token_map(weights, len(head), target.config.vocabulary)

    @classmethod
    def load(cls, folder: Path, target: Llama) -> "Eagle3Head":
        """Read a draft folder. Raises UsageError where it is none or does not fit."""
        config = read_config(folder, FLAG, ("LlamaForCausalLMEagle3",))
        return cls(config, read_weights(folder, FLAG), target)

    def new_cache(self, slots: int) -> SlotCache:
        """An empty cache that fits the one layer."""
        return SlotCache(1, slots, self._config.kv_heads, self._config.head_size)

    def forward(self, tokens: Ints, features: Array | None, step: Step, cache: SlotCache) -> Array:
        """`features`: the target's captured states side by side, or this head's own states of the step before."""
        assert features is not None
        epsilon = self._config.epsilon
        hidden = features
        if self._reduce is not None and features.shape[1] != self._config.hidden:
            hidden = self._reduce(features)
        both = np.concatenate([normalized(self._embedding[tokens], epsilon), normalized(hidden, epsilon)], axis=1)
        hidden = hidden + self._attention(both, step, turns_of(self._rotations, step), cache, 0)
        hidden += self._feed(hidden)
        return hidden

    def logits(self, hidden: Array) -> Array:
        """Logits over the draft vocabulary, [t, draft vocabulary]."""
        return self._head(normalized(hidden, self._config.epsilon))


def captured_layers(config: ModelConfig, layers: int) -> tuple[int, ...]:
    """The target's layers whose inputs the head reads, as SGLang chooses them.

    `eagle_config.eagle_aux_hidden_state_layer_ids` names layers by their outputs; the default is 2, n//2 and n-3.
    Doubles and layers that a shallow target lacks fall away. Raises UsageError where neither one nor the number of
    states that fc takes is left: SGLang can't run such a pair either.
    """
    ids = (config.raw.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    asked = [2, layers // 2, layers - 3] if ids is None else [layer + 1 for layer in ids]
    found = tuple(sorted({layer for layer in asked if 0 <= layer < layers}))
    if len(found) not in (1, len(asked)):
        raise UsageError(
            f"{FLAG}: the head reads {len(asked)} hidden states, the target of {layers} layers gives {len(found)}"
        )
    return found


def _check_fit(config: ModelConfig, target: Llama) -> None:
    for key, found, expected in (
        ("hidden_size", config.hidden, target.config.hidden),
        ("vocab_size", config.vocabulary, target.config.vocabulary),
        ("target_hidden_size", config.raw.get("target_hidden_size", target.config.hidden), target.config.hidden),
        ("num_hidden_layers", config.layers, 1),
    ):
        if found != expected:
            raise UsageError(f"{FLAG}: the draft's {key} is {found}, expected {expected} for this target")
    for key in _UNSUPPORTED:
        if config.raw.get(key) or (config.raw.get("eagle_config") or {}).get(key):
            raise UsageError(f"{FLAG}: the draft sets {key}, which the embedded engine does not implement")


def _head(config: ModelConfig, weights: Weights, target: Llama) -> Array:
    """Its own lm_head; the target's embedding where tied, the target's head where it has no vocabulary of its own."""
    if config.tied:
        return target.embedding
    own = config.raw.get("draft_vocab_size")
    if own is None:
        return target.output_weight
    return tensor(weights, "lm_head.weight", (int(own), config.hidden), FLAG)


def _token_map(weights: Weights, drafts: int, vocabulary: int) -> Ints | None:
    """`d2t` holds differences: draft id i is target id i + d2t[i]."""
    if "d2t" not in weights:
        if drafts != vocabulary:
            raise UsageError(f"{FLAG}: {drafts} draft tokens of {vocabulary} need a d2t map, found none")
        return None
    differences = tensor(weights, "d2t", (drafts,), FLAG)
    ids = np.arange(drafts) + differences.astype(np.int64)
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise UsageError(f"{FLAG}: d2t leads to token {int(ids.max())}, expected ids below {vocabulary}")
    return ids

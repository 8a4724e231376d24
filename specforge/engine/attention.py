"""Rotary embedding, and attention of a uniform batch over a slot cache."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from specforge.engine.cache import SlotCache
from specforge.engine.kernels import Array, Ints, Linear, exponentials_
from specforge.errors import UsageError

Mask = npt.NDArray[np.bool_]
Rotations = npt.NDArray[np.complex64]


@dataclass(frozen=True)
class Step:
    """Where the tokens of one forward pass stand: B requests in neighbouring slots, n tokens each.

    A token sees the first `lengths[b]` cells of its slot, and those of the `visible.shape[-1]` cells after them that
    `visible` names. Its own cell is among the last n of these.
    """

    first_slot: int
    lengths: Ints
    """Cells every token sees, [B]."""
    positions: Ints
    """Position of each token for the rotary embedding, [B, n]."""
    visible: Mask
    """[n, w] for all requests, or [B, n, w]: what each token sees of the w cells after `lengths`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Requests and tokens each: (B, n)."""
        return self.positions.shape[0], self.positions.shape[1]

    @cached_property
    def width(self) -> int:
        """Cells that the longest request reaches in this pass."""
        return int(self.lengths.max()) + int(self.visible.shape[-1])

    @cached_property
    def cells(self) -> Ints:
        """The cell each token's key and value go to, [B, n]."""
        tokens = self.positions.shape[1]
        first = self.lengths + (self.visible.shape[-1] - tokens)
        cells: Ints = first[:, None] + np.arange(tokens)
        return cells

    @cached_property
    def bias(self) -> Array | None:
        """0 where a token sees a cell and -inf elsewhere, [B, 1, 1, n, width]; None where it sees all."""
        requests, tokens = self.shape
        if requests == 1 and self.visible.all():
            return None
        scratch = self.visible.shape[-1]
        bias = np.full((requests, tokens, self.width), -np.inf, np.float32)
        bias[np.arange(self.width) < self.lengths[:, None, None] + np.zeros((1, tokens, 1), np.int64)] = 0.0
        seen = np.where(self.visible, np.float32(0), np.float32(-np.inf))
        for request, length in enumerate(self.lengths):
            bias[request, :, length : length + scratch] = seen if seen.ndim == 2 else seen[request]
        spread: Array = bias[:, None, None]
        return spread


def rotations(rope: Mapping[str, Any], head_size: int, positions: int, source: str) -> Rotations:
    """The rotation of each pair of dimensions at each position, as complex numbers [positions, head_size / 2].

    Computed in float32 as the reference implementations do. Raises UsageError, naming `source`, for a scaling that
    is neither `default`, `linear` nor `llama3`.
    """
    kind, base = rope["rope_type"], float(rope["rope_theta"])
    exponents = np.arange(0, head_size, 2, dtype=np.float32) / np.float32(head_size)
    frequencies = (1.0 / np.power(np.float32(base), exponents)).astype(np.float32)
    if kind == "linear":
        frequencies /= np.float32(rope["factor"])
    elif kind == "llama3":
        frequencies = _llama3(frequencies, rope)
    elif kind != "default":
        raise UsageError(f"{source}: rope type {kind!r}, expected default, linear or llama3")
    angles = np.outer(np.arange(positions, dtype=np.float32), frequencies)
    turns: Rotations = (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)
    return turns


def _llama3(frequencies: Array, rope: Mapping[str, Any]) -> Array:
    """Llama 3.1's scaling: low frequencies divided by the factor, high ones kept, a ramp between."""
    factor, original = float(rope["factor"]), float(rope["original_max_position_embeddings"])
    low, high = float(rope["low_freq_factor"]), float(rope["high_freq_factor"])
    turns = original * frequencies / (2 * math.pi)
    ramp = np.clip((turns - low) / (high - low), 0.0, 1.0)
    scaled: Array = (frequencies * ((1 - ramp) / factor + ramp)).astype(np.float32)
    return scaled


def turns_of(table: Rotations, step: Step) -> Rotations:
    """The rotation of each token of a step, as every layer uses it: [B, n, 1, head_size / 2]."""
    return table[step.positions][:, :, None]


class Attention:
    """Grouped-query attention with rotary embedding; input already normalized."""

    def __init__(self, query: Array, key: Array, value: Array, output: Array, *, heads: int, kv_heads: int) -> None:
        """Weights as in the checkpoint: [heads x size, in] (query), [kv heads x size, in], [out, heads x size]."""
        self._heads, self._kv_heads = heads, kv_heads
        self._size = query.shape[0] // heads
        scaled = query * np.float32(self._size**-0.5)
        self._project = Linear(np.concatenate([_paired(scaled, heads), _paired(key, kv_heads), value]))
        self._output = Linear(output)

    def __call__(self, rows: Array, step: Step, turns: Rotations, cache: SlotCache, layer: int) -> Array:
        """Attend, and leave this pass's keys and values in the cache: [B x n, in] -> [B x n, out].

        `turns`: the rotation of each token, [B, n, 1, size / 2].
        """
        requests, tokens = step.shape
        heads, kv_heads, size = self._heads, self._kv_heads, self._size
        projected = self._project(rows).reshape(requests, tokens, heads + 2 * kv_heads, size)
        turned = projected[:, :, : heads + kv_heads].view(np.complex64)
        turned *= turns
        keys, values = projected[:, :, heads : heads + kv_heads], projected[:, :, heads + kv_heads :]
        cache.store(layer, step.first_slot, step.cells, keys, values)
        grouped = projected[:, :, :heads].reshape(requests, tokens, kv_heads, heads // kv_heads, size)
        query = grouped.transpose(0, 2, 3, 1, 4).reshape(requests, kv_heads, -1, size)
        slots = slice(step.first_slot, step.first_slot + requests)
        # Keys times queries, turned over afterwards, is faster than queries times keys turned over.
        products = np.matmul(cache.keys[layer][slots, :, : step.width], query.swapaxes(2, 3))
        scores = np.ascontiguousarray(products.swapaxes(2, 3))
        if step.bias is not None:
            scores = scores.reshape(requests, kv_heads, heads // kv_heads, tokens, -1)
            scores += step.bias
            scores = scores.reshape(requests, kv_heads, -1, scores.shape[-1])
        sums = exponentials_(scores)
        mixed = np.matmul(scores, cache.values[layer][slots, :, : step.width])
        mixed /= sums
        by_token = mixed.reshape(requests, heads, tokens, size).swapaxes(1, 2)
        return self._output(by_token.reshape(requests * tokens, heads * size))


def _paired(weight: Array, heads: int) -> Array:
    """Reorder each head's rows so that the two dimensions a rotation mixes are neighbours.

    Checkpoints put them half a head apart. Scores do not change, as queries and keys are reordered alike, and a
    rotation becomes one complex product.
    """
    halves = weight.reshape(heads, 2, -1, weight.shape[1])
    paired: Array = halves.swapaxes(1, 2).reshape(weight.shape)
    return paired

"""The arithmetic of the engine in float32 NumPy. Activations are rows: an array [tokens, features]."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
"""Float32 values; the shape is said where it is used."""

Ints = npt.NDArray[np.int64]
"""Token ids, positions or cells of a cache."""

_PANEL = 64
"""Outputs of a panel: as many as keep a core's vector registers busy, and neighbours in memory."""

_UNPACKED_LIMIT = 1_000_000
"""OpenBLAS multiplies without first repacking the weight while tokens x inputs x outputs stays below this."""


class Linear:
    """A weight of shape [out, in], applied to rows: [tokens, in] -> [tokens, out].

    With few tokens most of a general product's time goes into repacking the weight, or into reading it in strides. So
    it is stored in panels of 64 outputs, each as the product reads it, from the first number to the last, and the
    products are small enough to be done without repacking: verifying four tokens costs little more than one.
    """

    def __init__(self, weight: Array) -> None:
        self.outputs, self.inputs = weight.shape
        panels = -(-self.outputs // _PANEL)
        padded = np.zeros((panels * _PANEL, self.inputs), np.float32)
        padded[: self.outputs] = weight
        self.panels = np.ascontiguousarray(padded.reshape(panels, _PANEL, self.inputs).swapaxes(1, 2))
        """[panels, in, 64]; outputs that only fill the last panel are zero."""
        self._most = max(2, _UNPACKED_LIMIT // (_PANEL * self.inputs))

    def __call__(self, rows: Array) -> Array:
        """The product [tokens, out]."""
        tokens = len(rows)
        if tokens == 1:
            # The product of a matrix with a vector is another kernel, and slower than that of two rows.
            rows = rows.repeat(2, axis=0)
        product = np.empty((len(rows), len(self.panels) * _PANEL), np.float32)
        by_panel = product.reshape(len(rows), -1, _PANEL).swapaxes(0, 1)
        for start in range(0, tokens, self._most):
            chunk = slice(start, start + self._most)
            np.matmul(rows[chunk], self.panels, out=by_panel[:, chunk])
        return product[:tokens, : self.outputs]


def normalized(rows: Array, epsilon: float) -> Array:
    """RMSNorm of every row, without its gain (the gain is folded into the weight that follows)."""
    scale = np.add.reduce(rows * rows, axis=-1, keepdims=True)
    scale /= rows.shape[-1]
    scale += epsilon
    np.sqrt(scale, out=scale)
    scaled: Array = np.divide(rows, scale)
    return scaled


def gated_silu(gate_and_up: Array) -> Array:
    """SwiGLU's activation: [tokens, 2 x inner] -> silu(first half) x second half, [tokens, inner]."""
    inner = gate_and_up.shape[1] // 2
    gate = gate_and_up[:, :inner]
    activated: Array = gate * gate_and_up[:, inner:]
    denominator = np.exp(-gate)
    denominator += 1.0
    activated /= denominator
    return activated


def exponentials_(scores: Array) -> Array:
    """Softmax over the last axis but for its division: the scores become exponentials, in place; returns their sums."""
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    sums: Array = np.add.reduce(scores, axis=-1, keepdims=True)
    return sums


def softmax(logits: Array) -> Array:
    """Softmax over the last axis."""
    likely = logits.astype(np.float32, copy=True)
    likely /= exponentials_(likely)
    return likely

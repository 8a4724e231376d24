"""The arithmetic of the engine in float32 NumPy.

Activations are kept in *columns*: an array of shape [features, tokens], a token a column. That is the layout
in which a product with few tokens is cheap (see `Linear`), and it needs no transposition between layers.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
"""Float32 values; the shape is said where it is used."""

Ints = npt.NDArray[np.int64]
"""Token ids, positions or cells of a cache."""

_UNPACKED_LIMIT = 1_000_000
"""OpenBLAS multiplies without first repacking the weight while rows x tokens x columns stays below this."""

_WIDE = 64
"""From this many tokens on, the cost of repacking is spread over enough columns."""


class Linear:
    """A weight of shape [out, in], applied to columns: [in, tokens] -> [out, tokens].

    With few tokens the time of a general product goes into repacking the weight. Blocks of rows small
    enough to be multiplied unpacked avoid it: verifying four tokens then costs little more than one.
    """

    def __init__(self, weight: Array) -> None:
        self.weight = np.ascontiguousarray(weight, dtype=np.float32)
        self._blocks: dict[int, Array] = {}

    @property
    def inputs(self) -> int:
        """Number of input features."""
        return int(self.weight.shape[1])

    @property
    def outputs(self) -> int:
        """Number of output features."""
        return int(self.weight.shape[0])

    def __call__(self, columns: Array) -> Array:
        """The product [out, tokens]; `columns` must be C-contiguous to be fast."""
        tokens = columns.shape[1]
        if tokens >= _WIDE:
            return self.weight @ columns
        blocks = self._blocks.get(tokens)
        if blocks is None:
            blocks = self._blocks[tokens] = self._split(tokens)
        if len(blocks) == 1:
            return self.weight @ columns
        product: Array = np.matmul(blocks, columns).reshape(self.weight.shape[0], tokens)
        return product

    def _split(self, tokens: int) -> Array:
        """The weight as a view [blocks, rows, in] whose blocks stay below the limit."""
        rows, columns = self.weight.shape
        at_most = min(rows, max(1, _UNPACKED_LIMIT // (tokens * columns)))
        height = next(height for height in range(at_most, 0, -1) if rows % height == 0)
        return self.weight.reshape(rows // height, height, columns)


def normalized(columns: Array, epsilon: float) -> Array:
    """RMSNorm of every column, without its gain (the gain is folded into the weight that follows)."""
    mean_square = np.add.reduce(columns * columns, axis=0)
    mean_square /= columns.shape[0]
    mean_square += epsilon
    scaled: Array = columns / np.sqrt(mean_square, out=mean_square)
    return scaled


def gated_silu(gate_and_up: Array) -> Array:
    """SwiGLU's activation: [2 x inner, tokens] -> silu(first half) x second half, [inner, tokens]."""
    inner = gate_and_up.shape[0] // 2
    gate = gate_and_up[:inner]
    denominator = np.exp(-gate)
    denominator += 1.0
    gate /= denominator
    gate *= gate_and_up[inner:]
    return gate


def softmax_(scores: Array) -> Array:
    """Softmax over the last axis, in place."""
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= np.add.reduce(scores, axis=-1, keepdims=True)
    return scores


def softmax(logits: Array) -> Array:
    """Softmax over the last axis."""
    return softmax_(logits.astype(np.float32, copy=True))

"""Verification: which path of a draft tree the target takes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specforge.engine.attention import Step
from specforge.engine.cache import SlotCache
from specforge.engine.kernels import Array, Ints
from specforge.engine.model import Llama
from specforge.engine.tree import DraftTree

_AT_ONCE = 8
"""Nodes up to which a tree is computed whole."""
_FIRST_LOOK = 6
"""Nodes of a larger tree that are computed at first."""


@dataclass(frozen=True)
class Verdict:
    """One request's outcome of a verification step."""

    path: list[int]
    """Nodes accepted, from the root on."""
    tokens: list[int]
    """The token after each node of the path: the accepted drafts and, last, the target's own (bonus) token."""

    @property
    def correct(self) -> int:
        """Drafts accepted, bonus not counted."""
        return len(self.path) - 1


def walk(tokens: Ints, parents: Ints, choose: Callable[[int, list[int]], int]) -> Verdict:
    """Follow the target through a tree of one request, tokens and parents [D].

    `choose(node, drafts)` is the target's token after `node`, reached over the accepted `drafts`. Greedily it is the
    argmax. With temperature it is a sample from the target's distribution there, and taking the child that
    carries it is rejection sampling: drafts are picked without chance, so a child x stands for a proposal
    that is certain; it is accepted with probability p(x), and what is drawn after all children
    were rejected is p without them, renormalized. Each output token so has exactly the target's distribution.
    """
    path, chosen = [0], [choose(0, [])]
    while True:
        for child in range(path[-1] + 1, len(tokens)):
            if parents[child] == path[-1] and tokens[child] == chosen[-1]:
                break
        else:
            return Verdict(path, chosen)
        path.append(child)
        chosen.append(choose(child, chosen.copy()))


class View:
    """What the target makes of the nodes of B draft trees: logits, states, and cells in its cache.

    A GPU computes all nodes of a tree in the time of one, a core does not. So of a large tree the likeliest nodes come
    first, which is most often enough, and what lies below another node only when the walk gets there. What is
    accepted, and that it was one verification step, does not depend on it.
    """

    def __init__(
        self, target: Llama, cache: SlotCache, capture: tuple[int, ...], lengths: Ints, tree: DraftTree
    ) -> None:
        """`lengths`: cells filled before the trees, [B]; `tree`: its nodes from the likeliest on."""
        self._target, self._cache, self._capture = target, cache, capture
        self._lengths, self._tree = lengths, tree
        requests, nodes = tree.tokens.shape
        first = nodes if nodes <= _AT_ONCE else _FIRST_LOOK
        step = Step(0, lengths, lengths[:, None] + tree.depths[:, :first], tree.visible[:, :first, :first])
        logits, features = self._compute(tree.tokens[:, :first].ravel(), step)
        self._logits = _widened(logits.reshape(requests, first, -1), nodes)
        self._greedy = self._logits[:, :first].argmax(axis=-1)
        self._features = None if features is None else _widened(features.reshape(requests, first, -1), nodes)
        self._cells = np.full((requests, nodes), -1)
        self._cells[:, :first] = np.arange(first)

    @property
    def features(self) -> Array | None:
        """The captured states of all nodes, [B x D, f]; those of nodes that were not computed mean nothing."""
        return None if self._features is None else self._features.reshape(-1, self._features.shape[2])

    def logits(self, row: int, node: int) -> Array:
        """Logits [vocabulary] of what comes after a node of the tree in a row."""
        self._look(row, node)
        logits: Array = self._logits[row, node]
        return logits

    def greedy(self, row: int, node: int) -> int:
        """The token of the highest probability there."""
        if node < self._greedy.shape[1]:
            return int(self._greedy[row, node])
        return int(self.logits(row, node).argmax())

    def settle(self, row: int, path: list[int]) -> None:
        """Let the cells of an accepted path follow one another."""
        cells = self._cells[row, path]
        if cells[-1] != len(path) - 1:
            self._cache.gather(row, int(self._lengths[row]), cells)

    def _look(self, row: int, node: int) -> None:
        """Compute a node, and all below it, if it was not yet."""
        cells = self._cells[row]
        if cells[node] >= 0:
            return
        sees = self._tree.visible[row]
        below = np.flatnonzero(sees[:, node] & (cells < 0))
        width = int(cells.max()) + 1 + len(below)
        cells[below] = np.arange(width - len(below), width)
        known = np.flatnonzero(cells >= 0)
        visible = np.zeros((len(below), width), np.bool_)
        visible[:, cells[known]] = sees[below[:, None], known]
        length = self._lengths[row : row + 1]
        step = Step(row, length, (length + self._tree.depths[row, below])[None], visible)
        self._logits[row, below], features = self._compute(self._tree.tokens[row, below], step)
        if self._features is not None:
            self._features[row, below] = features

    def _compute(self, tokens: Ints, step: Step) -> tuple[Array, Array | None]:
        hidden, features = self._target.forward(tokens, step, self._cache, self._capture)
        return self._target.logits(hidden), features


def _widened(values: Array, nodes: int) -> Array:
    """[B, n, w] -> [B, nodes, w], with room for what is not known yet."""
    requests, known, width = values.shape
    if known == nodes:
        return values
    room = np.empty((requests, nodes, width), np.float32)
    room[:, :known] = values
    return room

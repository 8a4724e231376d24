"""Draft trees: the nodes that one verification pass checks."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specforge.engine.attention import Mask
from specforge.engine.kernels import Array, Ints


@dataclass(frozen=True)
class DraftTree:
    """Drafts of B requests, D nodes each. Node 0 is the root: the last token, whose cell is still to be filled.

    Parents come before their children. A node that nothing leads to has the parent -1 as the root has.
    """

    tokens: Ints
    """[B, D]."""
    parents: Ints
    """Index of each node's parent, [B, D]; -1 for the root."""

    @property
    def depths(self) -> Ints:
        """Distance of each node from the root, [B, D]."""
        depths: Ints = self.visible.sum(axis=2, dtype=np.int64) - 1
        return depths

    @cached_property
    def visible(self) -> Mask:
        """What each node sees of the tree: its ancestors and itself, [B, D, D]."""
        requests, nodes = self.tokens.shape
        visible = np.zeros((requests, nodes, nodes), np.bool_)
        every = np.arange(requests)
        for node in range(nodes):
            parent = self.parents[:, node]
            visible[:, node] = visible[every, parent] & (parent >= 0)[:, None]
            visible[:, node, node] = True
        return visible


def chain(tokens: Ints) -> DraftTree:
    """Each token [B, D] follows the one before it."""
    parents = np.broadcast_to(np.arange(-1, tokens.shape[1] - 1), tokens.shape)
    return DraftTree(tokens, parents)


def best(values: Array, count: int) -> Ints:
    """Indices of the `count` largest values of each row, largest first; of equal ones the earlier first."""
    order: Ints = np.argsort(-values, axis=-1, kind="stable")[..., :count]
    return order


def largest(values: Array, count: int) -> Ints:
    """`best` for rows as long as a vocabulary: only the candidates are sorted."""
    if count == 1:
        top: Ints = values.argmax(axis=-1)[..., None]
        return top
    candidates = np.sort(np.argpartition(values, -count, axis=-1)[..., -count:], axis=-1)
    chosen: Ints = np.take_along_axis(candidates, best(np.take_along_axis(values, candidates, axis=-1), count), axis=-1)
    return chosen


class Beam:
    """Grows the candidates of a draft tree, `width` a step, and picks the best nodes by their path's probability.

    Step 1 has `width` candidates, each later step width x width: the children of the candidates kept. All candidates
    seen, kept or not, compete for the tree (EAGLE-2's reranking).
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._scores: list[Array] = []
        self._tokens: list[Ints] = []
        self._parents: list[Ints] = []
        self._kept_scores: Array | None = None
        self._kept: Ints | None = None

    def grow(self, probabilities: Array, tokens: Ints) -> tuple[Ints, Ints]:
        """Add the children of what was kept, and keep the best.

        `probabilities` and `tokens`: [B, rows, width], for the one root (rows 1) or each kept candidate.
        Returns the tokens kept and, for each, the row it grew from: [B, width] twice.
        """
        requests, rows, width = probabilities.shape
        if self._kept_scores is None or self._kept is None:
            scores = probabilities[:, 0]
            parents = np.full(scores.shape, -1)
        else:
            scores = (self._kept_scores[:, :, None] * probabilities).reshape(requests, -1)
            parents = np.repeat(self._kept, width, axis=1)
        flat = tokens.reshape(requests, -1)
        chosen = np.broadcast_to(np.arange(width), scores.shape) if rows == 1 else best(scores, width)
        offset = sum(part.shape[1] for part in self._scores)
        self._scores.append(scores)
        self._tokens.append(flat)
        self._parents.append(parents)
        self._kept_scores = np.take_along_axis(scores, chosen, axis=1)
        self._kept = chosen + offset
        return np.take_along_axis(flat, chosen, axis=1), chosen // width

    def tree(self, roots: Ints, nodes: int) -> DraftTree:
        """The tree of `nodes` nodes, root included; `roots` [B]."""
        scores = np.concatenate(self._scores, axis=1)
        tokens = np.concatenate(self._tokens, axis=1)
        parents = np.concatenate(self._parents, axis=1)
        chosen = np.sort(best(scores, nodes - 1), axis=1)
        requests = len(roots)
        # Where each candidate went: its node, or -1 if it was not picked. The last column stands for the root.
        place = np.full((requests, scores.shape[1] + 1), -1)
        np.put_along_axis(place, chosen, np.arange(1, nodes)[None], axis=1)
        place[:, -1] = 0
        node_parents = np.take_along_axis(place, np.take_along_axis(parents, chosen, axis=1), axis=1)
        return DraftTree(
            np.concatenate([roots[:, None], np.take_along_axis(tokens, chosen, axis=1)], axis=1),
            np.concatenate([np.full((requests, 1), -1), node_parents], axis=1),
        )

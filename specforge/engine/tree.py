"""Draft trees: the nodes that one verification pass checks."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from specforge.engine.attention import Mask
from specforge.engine.kernels import Array, Ints

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class DraftTree:
    """Drafts of B requests, D nodes each. Node 0 is the root: the last token, whose cell is still to be filled.

    Parents come before their children, and likelier nodes before others. A node that nothing leads to has the parent -1
    as the root has.
    """

    tokens: Ints
    """[B, D]."""
    parents: Ints
    """Index of each node's parent, [B, D]; -1 for the root."""
    visible: Mask
    """What each node sees of the tree: its ancestors and itself, [B, D, D]."""

    @classmethod
    def of(cls, tokens: Ints, parents: Ints) -> "DraftTree":
        """The tree of these parents."""
        itself = np.eye(tokens.shape[1], dtype=np.bool_)
        every, connected = np.arange(len(tokens))[:, None], (parents >= 0)[:, :, None]
        visible, deeper = np.broadcast_to(itself, (len(tokens), *itself.shape)), True
        while deeper:
            # Each round lets a node see one ancestor more.
            before, visible = visible, itself | (visible[every, parents] & connected)
            deeper = bool((before != visible).any())
        return cls(tokens, parents, visible)

    @cached_property
    def depths(self) -> Ints:
        """Distance of each node from the root, [B, D]."""
        depths: Ints = self.visible.sum(axis=2, dtype=np.int64) - 1
        return depths


def chain(tokens: Ints) -> DraftTree:
    """Each token [B, D] follows the one before it."""
    requests, nodes = tokens.shape
    parents = np.broadcast_to(np.arange(-1, nodes - 1), tokens.shape)
    return DraftTree(tokens, parents, np.broadcast_to(np.tri(nodes, dtype=np.bool_), (requests, nodes, nodes)))


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
    return picked(candidates, best(picked(values, candidates), count))


def picked(values: npt.NDArray[Scalar], indices: Ints) -> npt.NDArray[Scalar]:
    """`values[row, indices[row]]` for each row: what `np.take_along_axis` gives, at a fraction of its cost."""
    return values[np.arange(len(values))[:, None], indices]


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
        self._kept_scores = picked(scores, chosen)
        self._kept = chosen + offset
        return picked(flat, chosen), chosen // width

    def tree(self, roots: Ints, nodes: int) -> DraftTree:
        """The tree of `nodes` nodes, root included; `roots` [B]. A path is never likelier than its beginning."""
        scores = np.concatenate(self._scores, axis=1)
        tokens = np.concatenate(self._tokens, axis=1)
        parents = np.concatenate(self._parents, axis=1)
        chosen = best(scores, nodes - 1)
        # Where each candidate went: its node, or -1 if it was not picked. The last column stands for the root.
        place = np.full((len(roots), scores.shape[1] + 1), -1)
        place[np.arange(len(roots))[:, None], chosen] = np.arange(1, nodes)
        place[:, -1] = 0
        return DraftTree.of(
            np.concatenate([roots[:, None], picked(tokens, chosen)], axis=1),
            np.concatenate([np.full((len(roots), 1), -1), picked(place, picked(parents, chosen))], axis=1),
        )

"""Keys and values of the tokens already seen: the slots that run, and the prefixes kept for reuse."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from specforge.engine.kernels import Array, Ints

_FIRST_CAPACITY = 256


class SlotCache:
    """One contiguous run of cells per running request and layer.

    `cells[layer]` has the shape [2, slots, kv heads, capacity, head size], keys before values. Running
    requests hold the slots 0 ... B-1, so that a batch is a view and attention needs no gathering. The capacity
    grows by doubling; memory that no request has reached is never touched.
    """

    def __init__(self, layers: int, slots: int, kv_heads: int, head_size: int) -> None:
        self._shape = (2, slots, kv_heads, _FIRST_CAPACITY, head_size)
        self.cells: list[Array] = [np.zeros(self._shape, np.float32) for _ in range(layers)]

    @property
    def capacity(self) -> int:
        """Cells a slot has at present."""
        return self._shape[3]

    @property
    def bytes_per_token(self) -> int:
        """Memory that one token takes, in bytes, over all layers."""
        both, _, kv_heads, _, head_size = self._shape
        return len(self.cells) * both * kv_heads * head_size * 4

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` cells a slot; what is stored stays."""
        if capacity <= self.capacity:
            return
        grown = self.capacity
        while grown < capacity:
            grown *= 2
        kept = self.capacity
        self._shape = (*self._shape[:3], grown, self._shape[4])
        for layer, old in enumerate(self.cells):
            new = np.zeros(self._shape, np.float32)
            new[:, :, :, :kept] = old
            self.cells[layer] = new

    def read(self, slot: int, start: int, stop: int) -> Array:
        """A copy of the cells start ... stop-1 of a slot: [layers, 2, kv heads, stop - start, head size]."""
        return np.stack([cells[:, slot, :, start:stop] for cells in self.cells])

    def write(self, slot: int, start: int, block: Array) -> None:
        """Put a block that `read` gave into a slot, from cell `start` on."""
        stop = start + block.shape[3]
        for cells, values in zip(self.cells, block, strict=True):
            cells[:, slot, :, start:stop] = values

    def move_slot(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` cells of one slot over another's."""
        for cells in self.cells:
            cells[:, target, :, :length] = cells[:, source, :, :length]

    def gather(self, slot: int, start: int, offsets: Ints) -> None:
        """Let the cells start + offsets follow one another from `start` on: a tree's accepted path, compacted."""
        count = len(offsets)
        for cells in self.cells:
            own = cells[:, slot]
            own[:, :, start : start + count] = own[:, :, start + offsets]


@dataclass(eq=False)
class _Node:
    """An edge of the radix tree: a run of keys and, for each cache, the block of their cells."""

    keys: tuple[Hashable, ...]
    blocks: tuple[Array, ...]
    parent: "_Node | None"
    used: int = 0
    children: dict[Hashable, "_Node"] = field(default_factory=dict)


class PrefixCache:
    """A radix tree over token sequences that keeps their cells, least recently used leaves going first.

    A key is what identifies a cell: the token id, or (token id, next id) where a draft's cell depends on the next
    token too. Blocks are copies, so an evicted or flushed prefix never touches a running request.
    """

    def __init__(self, budget: int) -> None:
        """`budget`: the most tokens kept."""
        self.budget = budget
        self.tokens = 0
        self._clock = 0
        self._root = _Node((), (), None)

    def clear(self) -> None:
        """Forget everything."""
        self.tokens = 0
        self._root = _Node((), (), None)

    def match(self, keys: Sequence[Hashable]) -> tuple[int, list[tuple[Array, ...]]]:
        """The longest stored prefix of `keys`: its length, and its blocks in order."""
        self._clock += 1
        length, blocks = 0, []
        for node, count in self._walk(keys):
            node.used = self._clock
            blocks.append(tuple(block[:, :, :, :count] for block in node.blocks))
            length += count
        return length, blocks

    def insert(self, keys: Sequence[Hashable], read: Callable[[int, int], tuple[Array, ...]]) -> None:
        """Store `keys`; `read(start, stop)` copies the cells of those that are new."""
        self._clock += 1
        length, last = 0, self._root
        for node, count in self._walk(keys):
            node.used = self._clock
            length += count
            last = node if count == len(node.keys) else self._split(node, count)
        new = len(keys) - length
        if new <= 0 or new > self.budget:
            return
        leaf = _Node(tuple(keys[length:]), read(length, len(keys)), last, self._clock)
        last.children[leaf.keys[0]] = leaf
        self.tokens += new
        while self.tokens > self.budget:
            self._evict()

    def _walk(self, keys: Sequence[Hashable]) -> Iterator[tuple[_Node, int]]:
        """The nodes along `keys`, each with how many of its keys match."""
        node, at = self._root, 0
        while at < len(keys):
            child = node.children.get(keys[at])
            if child is None:
                return
            count = 0
            for ours, theirs in zip(child.keys, keys[at : at + len(child.keys)], strict=False):
                if ours != theirs:
                    break
                count += 1
            yield child, count
            if count < len(child.keys):
                return
            node, at = child, at + count

    def _split(self, node: _Node, count: int) -> _Node:
        """Cut a node after `count` keys; returns the new upper half."""
        assert node.parent is not None
        upper = _Node(node.keys[:count], tuple(b[:, :, :, :count].copy() for b in node.blocks), node.parent, node.used)
        node.parent.children[upper.keys[0]] = upper
        node.keys, node.parent = node.keys[count:], upper
        node.blocks = tuple(block[:, :, :, count:].copy() for block in node.blocks)
        upper.children[node.keys[0]] = node
        return upper

    def _evict(self) -> None:
        """Drop the least recently used leaf."""
        leaves, stack = [], [self._root]
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            if not node.children and node.parent is not None:
                leaves.append(node)
        oldest = min(leaves, key=lambda leaf: leaf.used)
        assert oldest.parent is not None
        del oldest.parent.children[oldest.keys[0]]
        self.tokens -= len(oldest.keys)

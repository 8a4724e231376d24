"""Keys and values of the tokens already seen: the slots that run, and the prefixes kept for reuse."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from specforge.engine.kernels import Array, Ints

_FIRST_CAPACITY = 256


class SlotCache:
    """One contiguous run of cells per running request and layer.

    `keys[layer]` and `values[layer]` have the shape [slots, kv heads, capacity, head size]. Running requests hold the
    slots 0 ... B-1, so that a batch is a view and nothing is gathered. The capacity grows by doubling; memory that no
    request has reached is never touched.
    """

    def __init__(self, layers: int, slots: int, kv_heads: int, head_size: int) -> None:
        self.capacity = _FIRST_CAPACITY
        """Cells a slot has at present."""
        self._used = 0
        """Slots that were ever written: the others' memory stays untouched when growing."""
        self._slots, self._kv_heads, self._head_size = slots, kv_heads, head_size
        self.keys = [self._empty() for _ in range(layers)]
        self.values = [self._empty() for _ in range(layers)]

    @property
    def bytes_per_token(self) -> int:
        """Memory that one token takes, in bytes, over all layers."""
        return len(self.keys) * 2 * self._kv_heads * self._head_size * 4

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` cells a slot; what is stored stays."""
        kept = self.capacity
        if capacity <= kept:
            return
        while self.capacity < capacity:
            self.capacity *= 2
        for layer, (old_keys, old_values) in enumerate(zip(self.keys, self.values, strict=True)):
            self.keys[layer], self.values[layer] = self._empty(), self._empty()
            self.keys[layer][: self._used, :, :kept] = old_keys[: self._used]
            self.values[layer][: self._used, :, :kept] = old_values[: self._used]

    def read(self, slot: int, start: int, stop: int) -> Array:
        """A copy of the cells start ... stop-1 of a slot: [layers, 2, kv heads, stop - start, head size]."""
        block = np.empty((len(self.keys), 2, self._kv_heads, stop - start, self._head_size), np.float32)
        for layer, (keys, values) in enumerate(zip(self.keys, self.values, strict=True)):
            block[layer, 0] = keys[slot, :, start:stop]
            block[layer, 1] = values[slot, :, start:stop]
        return block

    def write(self, slot: int, start: int, block: Array) -> None:
        """Put a block that `read` gave into a slot, from cell `start` on."""
        stop = start + block.shape[3]
        self._used = max(self._used, slot + 1)
        for keys, values, (new_keys, new_values) in zip(self.keys, self.values, block, strict=True):
            keys[slot, :, start:stop] = new_keys
            values[slot, :, start:stop] = new_values

    def store(self, layer: int, slot: int, cells: Ints, keys: Array, values: Array) -> None:
        """Put keys and values [B, n, kv heads, head size] into the cells [B, n] of the slots from `slot` on."""
        requests, tokens = cells.shape
        self._used = max(self._used, slot + requests)
        if requests == 1:
            start = int(cells[0, 0])
            self.keys[layer][slot, :, start : start + tokens] = keys[0].swapaxes(0, 1)
            self.values[layer][slot, :, start : start + tokens] = values[0].swapaxes(0, 1)
            return
        slots = np.arange(slot, slot + requests)[:, None]
        self.keys[layer][slots, :, cells] = keys
        self.values[layer][slots, :, cells] = values

    def move_slot(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` cells of one slot over another's."""
        self._used = max(self._used, target + 1)
        for keys, values in zip(self.keys, self.values, strict=True):
            keys[target, :, :length] = keys[source, :, :length]
            values[target, :, :length] = values[source, :, :length]

    def gather(self, slot: int, start: int, offsets: Ints) -> None:
        """Let the cells start + offsets follow one another from `start` on: a tree's accepted path, compacted."""
        stop = start + len(offsets)
        for keys, values in zip(self.keys, self.values, strict=True):
            keys[slot][:, start:stop] = keys[slot][:, start + offsets]
            values[slot][:, start:stop] = values[slot][:, start + offsets]

    def _empty(self) -> Array:
        return np.zeros((self._slots, self._kv_heads, self.capacity, self._head_size), np.float32)


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

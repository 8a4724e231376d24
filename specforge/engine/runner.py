"""One target and one drafter over the same slots: prefill a request, advance a batch, keep prefixes."""

import itertools
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from specforge.engine.attention import Step
from specforge.engine.cache import PrefixCache, SlotCache
from specforge.engine.drafts.drafter import Drafter
from specforge.engine.kernels import Array
from specforge.engine.model import Llama
from specforge.engine.request import Request
from specforge.engine.sampling import Draw, choose
from specforge.engine.tree import DraftTree
from specforge.engine.verify import Verdict, View, walk

_CHUNK = 256
"""Prompt tokens a forward pass reads at most: bounds the memory of attention scores."""


class Runner:
    """The computation behind the scheduler. Requests hold the slots 0 ... B-1, in the order of the batch."""

    def __init__(self, target: Llama, drafter: Drafter, slots: int, prefix_tokens: int, eos: frozenset[int]) -> None:
        """`prefix_tokens`: most tokens the prefix cache keeps."""
        self.drafter = drafter
        self.prefixes = PrefixCache(prefix_tokens)
        self._target, self._eos = target, eos
        self._cache = target.new_cache(slots)
        self._caches: tuple[SlotCache, ...] = (self._cache, *drafter.caches)

    def prefill(self, request: Request) -> int:
        """Fill a request's slot with its prompt, from stored prefixes where there are any; returns the first token."""
        prompt = request.tokens[: request.prompt_length]
        self._reserve(len(prompt))
        # One token at least is computed: its logits give the first new token.
        request.cached = self._restore(request.slot, self._keys(prompt[:-1]))
        first = -1
        for start in range(request.cached, len(prompt), _CHUNK):
            tokens = np.array(prompt[start : start + _CHUNK])
            count, last = len(tokens), start + _CHUNK >= len(prompt)
            step = Step(request.slot, np.array([start]), start + np.arange(count)[None], np.tri(count, dtype=np.bool_))
            hidden, features = self._target.forward(tokens, step, self._cache, self.drafter.capture)
            if last:
                logits = self._target.logits(hidden[-1:])
                first = choose(logits[0], self._draw(request, 0, ()))
            following = prompt[start + 1 : start + count + 1] + ([first] if last else [])
            self.drafter.prefill(request, start, np.array(following), features, last)
        self._store(request, prompt)
        return first

    def advance(self, batch: Sequence[Request]) -> list[Verdict]:
        """One step of every request of the batch: draft, verify, let the drafter learn. Tokens are not committed."""
        lengths = np.array([request.filled for request in batch])
        self._reserve(int(lengths.max()) + self.drafter.scratch)
        tree = self.drafter.draft(batch)
        view = View(self._target, self._cache, self.drafter.capture, lengths, tree)
        verdicts = [self._walk(row, request, tree, view) for row, request in enumerate(batch)]
        for row, verdict in enumerate(verdicts):
            view.settle(row, verdict.path)
        self.drafter.accept(batch, lengths, verdicts, view.features)
        return verdicts

    def release(self, request: Request) -> None:
        """Keep a finished request's cells for reuse."""
        self._store(request, request.tokens[: request.filled])

    def move(self, request: Request, slot: int) -> None:
        """Give a running request another slot."""
        for cache in self._caches:
            cache.move_slot(request.slot, slot, request.filled)
        request.slot = slot

    def flush(self) -> None:
        """Empty the prefix cache, and what the drafter learnt from earlier requests."""
        self.prefixes.clear()
        self.drafter.flush()

    def _walk(self, row: int, request: Request, tree: DraftTree, view: View) -> Verdict:
        """The path that the target takes through one request's tree."""

        def token_after(node: int, drafts: list[int]) -> int:
            if request.params.plain:
                return view.greedy(row, node)
            return choose(view.logits(row, node), self._draw(request, request.output_length + len(drafts), drafts))

        return walk(tree.tokens[row], tree.parents[row], token_after)

    def _draw(self, request: Request, index: int, drafts: Sequence[int]) -> Draw:
        """The choice of output token `index`, after `drafts` that are accepted but not committed."""
        params = request.params
        counts: Counter[int] = Counter()
        if params.counts_outputs:
            counts = request.output_counts + Counter(drafts)
        prompt = request.tokens[: request.prompt_length] if params.repetition_penalty != 1.0 else ()
        return Draw(params, request.seed, index, prompt, counts, self._eos)

    def _reserve(self, cells: int) -> None:
        for cache in self._caches:
            cache.reserve(cells)

    def _keys(self, tokens: Sequence[int]) -> Sequence[Hashable]:
        """What identifies each cell. Pairs are one fewer than tokens."""
        return list(itertools.pairwise(tokens)) if self.drafter.pairs else tokens

    def _restore(self, slot: int, keys: Sequence[Hashable]) -> int:
        """Copy the longest stored prefix into a slot; returns its length."""
        length, blocks = self.prefixes.match(keys)
        at = 0
        for block in blocks:
            for cache, part in zip(self._caches, block, strict=True):
                cache.write(slot, at, part)
            at += block[0].shape[3]
        return length

    def _store(self, request: Request, tokens: Sequence[int]) -> None:
        def read(start: int, stop: int) -> tuple[Array, ...]:
            return tuple(cache.read(request.slot, start, stop) for cache in self._caches)

        self.prefixes.insert(self._keys(tokens), read)

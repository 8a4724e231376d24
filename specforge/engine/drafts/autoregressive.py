"""Drafting step by step with a model: what EAGLE-3 and STANDALONE have in common.

The draft model reads each position's *next* token. So its first draft after a verification needs no further pass,
and its cells depend on one token more than the target's.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from specforge.engine.attention import Step
from specforge.engine.cache import SlotCache
from specforge.engine.drafts.first_draft import FirstDraft
from specforge.engine.kernels import Array, Ints, softmax
from specforge.engine.request import Request
from specforge.engine.tree import Beam, DraftTree, chain, largest, picked
from specforge.engine.verify import Verdict


class DraftModel(Protocol):
    """A network that drafts."""

    capture: tuple[int, ...]
    """Layers of the target whose inputs it reads."""
    token_map: Ints | None
    """Its token ids -> the target's, [draft vocabulary]; None where they are the same."""
    pairs: bool
    """As in `Drafter`."""
    recurrent: bool
    """Whether its hidden state is an input of its next step."""

    def new_cache(self, slots: int) -> SlotCache:
        """An empty cache that fits it."""

    def forward(self, tokens: Ints, features: Array | None, step: Step, cache: SlotCache) -> Array:
        """Hidden states [B x n, hidden] of tokens [B x n] with the target's or its own states as `features`."""

    def logits(self, hidden: Array) -> Array:
        """Logits [t, draft vocabulary] of hidden states [t, hidden]."""


class AutoregressiveDrafter:
    """Chains (topk 1) and trees drafted by a model, as SGLang drafts them."""

    def __init__(self, model: DraftModel, slots: int, steps: int, topk: int, nodes: int) -> None:
        self.nodes = nodes
        self.capture = model.capture
        self.pairs = model.pairs
        self.scratch = max(nodes, steps * topk)
        self._model, self._steps, self._topk = model, steps, topk
        self._cache = model.new_cache(slots)
        self.caches: tuple[SlotCache, ...] = (self._cache,)

    def prefill(self, request: Request, start: int, following: Ints, features: Array | None, last: bool) -> None:
        """Read a stretch of the prompt; at its end, leave the first drafts."""
        count = len(following)
        step = Step(request.slot, np.array([start]), start + np.arange(count)[None], np.tri(count, dtype=np.bool_))
        hidden = self._model.forward(following, features, step, self._cache)
        if last:
            (request.first_draft,) = self._first_drafts(hidden[-1:])

    def draft(self, requests: Sequence[Request]) -> DraftTree:
        """Go on from each request's first drafts."""
        firsts = [request.first_draft for request in requests if request.first_draft is not None]
        roots = np.array([request.tokens[-1] for request in requests])
        lengths = np.array([request.filled for request in requests])
        hidden = None
        if self._model.recurrent:
            hidden = np.stack([first.hidden for first in firsts if first.hidden is not None])
        tokens = np.stack([first.tokens for first in firsts])
        if self._topk == 1:
            return self._chain(roots, lengths, tokens[:, 0], hidden)
        return self._tree(roots, lengths, tokens, np.stack([first.probabilities for first in firsts]), hidden)

    def accept(
        self, requests: Sequence[Request], lengths: Ints, verdicts: Sequence[Verdict], features: Array | None
    ) -> None:
        """Read the verified tokens, with the target's states, over the cells that drafting filled provisionally."""
        longest = max(len(verdict.path) for verdict in verdicts)
        # Shorter paths are padded with their last node: what it writes lies past the verified cells.
        ends = [len(verdict.path) - 1 for verdict in verdicts]
        tokens = np.array([v.tokens + v.tokens[-1:] * (longest - len(v.tokens)) for v in verdicts])
        if features is not None:
            nodes = np.array([v.path + v.path[-1:] * (longest - len(v.path)) for v in verdicts])
            features = features[(nodes + self.nodes * np.arange(len(verdicts))[:, None]).ravel()]
        positions = lengths[:, None] + np.arange(longest)
        step = Step(0, lengths, positions, np.tri(longest, dtype=np.bool_))
        hidden = self._model.forward(tokens.ravel(), features, step, self._cache)
        last = np.arange(len(verdicts)) * longest + ends
        firsts = self._first_drafts(hidden[last])
        for request, first in zip(requests, firsts, strict=True):
            request.first_draft = first

    def flush(self) -> None:
        """A draft model learns nothing."""

    def _chain(self, roots: Ints, lengths: Ints, tokens: Ints, hidden: Array | None) -> DraftTree:
        columns = [roots, tokens]
        for drafted in range(1, self._steps):
            step = Step(0, lengths, (lengths + drafted - 1)[:, None], np.ones((1, drafted), np.bool_))
            state = self._model.forward(tokens, hidden, step, self._cache)
            tokens = self._to_target(self._model.logits(state).argmax(axis=1))
            columns.append(tokens)
            hidden = state if self._model.recurrent else None
        return chain(np.stack(columns, axis=1))

    def _tree(self, roots: Ints, lengths: Ints, tokens: Ints, probabilities: Array, hidden: Array | None) -> DraftTree:
        requests, topk = tokens.shape
        beam = Beam(topk)
        kept, rows = beam.grow(probabilities[:, None], tokens[:, None])
        first = np.arange(requests)[:, None]
        for drafted in range(1, self._steps):
            if hidden is not None:
                hidden = hidden[(first * (len(hidden) // requests) + rows).ravel()]
            # Each of the topk rows sees the cells of its own row, even where its best path began in another: that is
            # how SGLang lays out draft cells, and what a draft's acceptance there is measured with.
            visible = np.tile(np.eye(topk, dtype=np.bool_), drafted)
            positions = np.repeat((lengths + drafted - 1)[:, None], topk, axis=1)
            step = Step(0, lengths, positions, visible)
            state = self._model.forward(kept.ravel(), hidden, step, self._cache)
            likely = softmax(self._model.logits(state))
            best = largest(likely, topk)
            kept, rows = beam.grow(
                picked(likely, best).reshape(requests, topk, topk),
                self._to_target(best).reshape(requests, topk, topk),
            )
            hidden = state if self._model.recurrent else None
        return beam.tree(roots, self.nodes)

    def _first_drafts(self, hidden: Array) -> list[FirstDraft]:
        """The first draft step from hidden states [B, hidden]."""
        logits = self._model.logits(hidden)
        if self._topk == 1:
            best = logits.argmax(axis=1)[:, None]
            likely = np.ones(best.shape, np.float32)
        else:
            probabilities = softmax(logits)
            best = largest(probabilities, self._topk)
            likely = np.take_along_axis(probabilities, best, axis=1)
        tokens = self._to_target(best)
        states = hidden if self._model.recurrent else [None] * len(tokens)
        return [FirstDraft(*first) for first in zip(tokens, likely, states, strict=True)]

    def _to_target(self, tokens: Ints) -> Ints:
        return tokens if self._model.token_map is None else self._model.token_map[tokens]

"""NGRAM: drafts are what followed the same tokens before, in this request's context or in earlier answers."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from specforge.engine.cache import SlotCache
from specforge.engine.kernels import Array, Ints
from specforge.engine.request import Request
from specforge.engine.tree import DraftTree
from specforge.engine.verify import Verdict

_MATCHED_AT_MOST = 18
"""Tokens before a place that are compared at most (SGLang's `--speculative-ngram-max-trie-depth`)."""
_PLACES = 16
"""Places looked at for one draft, latest first."""
_CAPACITY = 2_000_000
"""Tokens remembered; beyond, all is forgotten but what runs."""


class Corpus:
    """Token streams, and where in them each token and each pair of tokens ended."""

    def __init__(self) -> None:
        self.tokens = 0
        """Tokens remembered."""
        self._streams: dict[str, list[int]] = {}
        self._ends: defaultdict[tuple[int, ...], list[tuple[str, int]]] = defaultdict(list)

    def __contains__(self, stream: str) -> bool:
        return stream in self._streams

    def clear(self) -> None:
        """Forget everything."""
        self.tokens = 0
        self._streams.clear()
        self._ends.clear()

    def extend(self, stream: str, tokens: Sequence[int]) -> None:
        """Append to a stream."""
        known = self._streams.setdefault(stream, [])
        for token in tokens:
            known.append(token)
            end = stream, len(known)
            self._ends[token,].append(end)
            if len(known) > 1:
                self._ends[known[-2], token].append(end)
        self.tokens += len(tokens)

    def continuations(self, context: Sequence[int], length: int) -> list[list[int]]:
        """What followed the end of `context` before, up to `length` tokens each: the longest matches first, then the
        latest."""
        places = self._ends.get(tuple(context[-2:])) or self._ends.get(tuple(context[-1:])) or []
        found = []
        for age, (stream, end) in enumerate(reversed(places[-_PLACES:])):
            tokens = self._streams[stream]
            if end < len(tokens):
                pairs = zip(reversed(tokens[max(0, end - _MATCHED_AT_MOST) : end]), reversed(context), strict=False)
                matched = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                found.append((-matched, age, tokens[end : end + length]))
        return [following for _, _, following in sorted(found)]


class NgramDrafter:
    """Trees of `nodes` nodes out of a corpus; they may grow as deep as they have nodes."""

    capture: tuple[int, ...] = ()
    caches: tuple[SlotCache, ...] = ()
    pairs = False

    def __init__(self, nodes: int) -> None:
        self.nodes = self.scratch = nodes
        self.corpus = Corpus()

    def prefill(self, request: Request, start: int, following: Ints, features: Array | None, last: bool) -> None:
        """Remember the prompt and the first token after it."""
        del start, following, features
        if last:
            if self.corpus.tokens > _CAPACITY:
                self.corpus.clear()
            self.corpus.extend(request.rid, request.tokens)

    def draft(self, requests: Sequence[Request]) -> DraftTree:
        """The likeliest continuations of each context."""
        tokens = np.zeros((len(requests), self.nodes), np.int64)
        parents = np.full((len(requests), self.nodes), -1)
        for row, request in enumerate(requests):
            context = request.tokens[-_MATCHED_AT_MOST:]
            drafts = merged(self.corpus.continuations(context, self.nodes - 1), self.nodes - 1)
            tokens[row, 0] = request.tokens[-1]
            for node, (parent, token) in enumerate(drafts, start=1):
                tokens[row, node], parents[row, node] = token, parent
        return DraftTree.of(tokens, parents)

    def accept(
        self, requests: Sequence[Request], lengths: Ints, verdicts: Sequence[Verdict], features: Array | None
    ) -> None:
        """Remember the verified tokens."""
        del lengths, features
        for request, verdict in zip(requests, verdicts, strict=True):
            known = [] if request.rid in self.corpus else request.tokens
            self.corpus.extend(request.rid, [*known, *verdict.tokens])

    def flush(self) -> None:
        """Forget all streams."""
        self.corpus.clear()


def merged(continuations: Sequence[Sequence[int]], room: int) -> list[tuple[int, int]]:
    """A tree of at most `room` nodes below a root: (parent, token) of nodes 1, 2, ...

    Each continuation may take half of the room that is left, so that the likeliest goes deep and others still get in;
    what remains goes to them in the same order.
    """
    nodes: list[tuple[int, int]] = []
    children: dict[tuple[int, int], int] = {}
    for share in (2, 1):
        for tokens in continuations:
            allowed, at = -(-(room - len(nodes)) // share), 0
            for token in tokens:
                if (at, token) not in children:
                    if allowed == 0:
                        break
                    allowed -= 1
                    nodes.append((at, token))
                    children[at, token] = len(nodes)
                at = children[at, token]
    return nodes

"""What the scheduler asks of an algorithm."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from specforge.engine.cache import SlotCache
from specforge.engine.kernels import Array, Ints
from specforge.engine.request import Request
from specforge.engine.tree import DraftTree, chain
from specforge.engine.verify import Verdict


class Drafter(Protocol):
    """Proposes tokens for requests in the slots 0 ... B-1, and learns what became of them."""

    nodes: int
    """Nodes of each tree, root included (SGLang's `num_draft_tokens`)."""
    capture: tuple[int, ...]
    """Layers of the target whose inputs `prefill` and `accept` need."""
    caches: tuple[SlotCache, ...]
    """The draft model's cells, one for one with the target's."""
    pairs: bool
    """Whether a stored cell is known by its token and the next one, rather than by its token alone."""
    scratch: int
    """Cells past the verified ones that a draft or its verification may fill."""

    def prefill(self, request: Request, start: int, following: Ints, features: Array | None, last: bool) -> None:
        """Read the prompt's tokens start ... start + n - 1 of a request, as the target just did.

        `following`: the token after each, [n]; `features`: the target's captured states, [n, f];
        `last`: whether the prompt ends here.
        """

    def draft(self, requests: Sequence[Request]) -> DraftTree:
        """A tree for each request."""

    def accept(
        self, requests: Sequence[Request], lengths: Ints, verdicts: Sequence[Verdict], features: Array | None
    ) -> None:
        """Learn the verified tokens. `lengths`: cells filled before them, [B]; `features`: of all nodes, [B x D, f]."""

    def flush(self) -> None:
        """Forget what other requests taught."""


class NoDraft:
    """Decoding without speculation: trees of the root alone."""

    nodes = 1
    capture: tuple[int, ...] = ()
    caches: tuple[SlotCache, ...] = ()
    pairs = False
    scratch = 1

    def prefill(self, request: Request, start: int, following: Ints, features: Array | None, last: bool) -> None:
        """Nothing to read."""

    def draft(self, requests: Sequence[Request]) -> DraftTree:
        """The roots."""
        return chain(np.array([[request.tokens[-1]] for request in requests]))

    def accept(
        self, requests: Sequence[Request], lengths: Ints, verdicts: Sequence[Verdict], features: Array | None
    ) -> None:
        """Nothing to learn."""

    def flush(self) -> None:
        """Nothing to forget."""

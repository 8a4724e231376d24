"""Verification: which path of a draft tree the target takes."""

from collections.abc import Callable
from dataclasses import dataclass

from specforge.engine.kernels import Ints


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

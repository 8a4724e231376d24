"""What a draft model leaves behind for the next draft of the same request."""

from dataclasses import dataclass

from specforge.engine.kernels import Array, Ints


@dataclass(frozen=True)
class FirstDraft:
    """The first step of the next draft, known since the draft model last read verified tokens."""

    tokens: Ints
    """The best continuations, best first, [topk]."""
    probabilities: Array
    """Theirs, [topk]; 1 for a chain."""
    hidden: Array | None
    """The draft's hidden state that later steps start from, [hidden]; None where the draft is a whole model."""

"""STANDALONE: a smaller model of the same vocabulary drafts."""

from pathlib import Path

from specforge.engine.attention import Step
from specforge.engine.cache import SlotCache
from specforge.engine.drafts.eagle3 import FLAG
from specforge.engine.kernels import Array, Ints
from specforge.engine.model import Llama
from specforge.errors import UsageError


class StandaloneModel:
    """A whole Llama as a draft model; it reads no states of the target."""

    capture: tuple[int, ...] = ()
    token_map: Ints | None = None
    recurrent = False
    # Strictly its cells depend on the next token too, but SGLang reuses them by the token alone: where a prefix ends,
    # one cell may be another continuation's. Verification makes up for it; acceptance is what SGLang's would be.
    pairs = False

    def __init__(self, draft: Llama, target: Llama) -> None:
        """Raises UsageError where the vocabularies differ in size."""
        found, expected = draft.config.vocabulary, target.config.vocabulary
        if found != expected:
            raise UsageError(f"{FLAG}: STANDALONE needs the target's vocabulary of {expected} tokens, found {found}")
        self._draft = draft

    @classmethod
    def load(cls, folder: Path, target: Llama) -> "StandaloneModel":
        """Read the draft's folder. Raises UsageError where it is none or does not fit."""
        return cls(Llama.load(folder, FLAG, target.positions), target)

    def new_cache(self, slots: int) -> SlotCache:
        """An empty cache of all its layers."""
        return self._draft.new_cache(slots)

    def forward(self, tokens: Ints, features: Array | None, step: Step, cache: SlotCache) -> Array:  # noqa: ARG002
        """Hidden states before its final norm."""
        hidden, _ = self._draft.forward(tokens, step, cache)
        return hidden

    def logits(self, hidden: Array) -> Array:
        """Logits over the common vocabulary."""
        return self._draft.logits(hidden)

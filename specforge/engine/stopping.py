"""When an answer ends: stop strings, stop tokens and EOS, the limit, in SGLang's order of precedence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class TextStream(Protocol):
    """Turns token ids into text as they come."""

    text: str

    def feed(self, tokens: Sequence[int]) -> str:
        """Add tokens; returns the text that became certain."""


@dataclass(frozen=True)
class Stop:
    """Where and why an answer stopped."""

    kept: int
    """Of the tokens just checked, how many belong to the answer."""
    kind: str
    """stop | length."""
    detail: dict[str, Any]


class StopCheck:
    """Checks new tokens of one request."""

    def __init__(self, strings: Sequence[str], tokens: frozenset[int], stream: Callable[[], TextStream]) -> None:
        """`tokens`: ids that end the answer, EOS included; empty with `ignore_eos`."""
        self._strings, self._tokens = strings, tokens
        self._longest = max(map(len, strings), default=0)
        self._stream = stream() if strings else None

    def check(self, new: Sequence[int], room: int) -> Stop | None:
        """`room`: tokens that still fit below the limit. None while the answer goes on.

        Several tokens may be new at once. A stop string goes before a stop token of the same step, a stop token before
        the limit; a stop past the limit is the limit.
        """
        found = self._string_stop(new) or self._token_stop(new)
        if found is not None and found.kept <= room:
            return found
        return Stop(room, "length", {}) if len(new) >= room else None

    def _string_stop(self, new: Sequence[int]) -> Stop | None:
        if self._stream is None:
            return None
        for at, token in enumerate(new):
            added = self._stream.feed([token])
            tail = self._stream.text[-(len(added) + self._longest) :] if added else ""
            for string in self._strings:
                if string in tail:
                    return Stop(at + 1, "stop", {"matched": string})
        return None

    def _token_stop(self, new: Sequence[int]) -> Stop | None:
        for at, token in enumerate(new):
            if token in self._tokens:
                return Stop(at + 1, "stop", {"matched": token})
        return None

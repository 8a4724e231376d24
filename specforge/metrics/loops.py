"""Degenerate text: outputs that are one unit repeated for ever, which a draft model predicts beautifully.

The rule. A *stretch* is a part of the text in which one unit of at most 1,000 characters repeats character for
character, back to back. A text is a loop where a stretch

- runs into the end of an answer that the token limit cut, has 4 repeats or more and 160 characters or more; or
- runs into the end of a complete answer, has 12 repeats or more and 300 characters or more; or
- stands anywhere, has 20 repeats or more, and is 500 characters or more and half of the text or more; or
- runs into the end of a cut answer once every number is replaced by one sign, with 8 repeats or more of a unit of 20
  letters or more (numbered lists that say the same thing in each line).

Honest repetition stays outside: counting and multiplication tables change with each step; the rows of a table, lines
of code and list items differ; and what repeats exactly (rulers, empty cells, some equal lines) is short or ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_UNIT = 1000
_ANCHOR = 48  # characters that must recur before a stretch is looked at more closely
_STEP = 160  # distance between the places that are looked at; a stretch of 500 contains one with room before it
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A periodic part of a text.

    Attributes:
        start: index of its first character.
        end: index after its last one.
        period: length of the unit, characters.
    """

    start: int
    end: int
    period: int

    @property
    def repeats(self) -> float:
        """How many times the unit occurs, the broken one at an edge as a fraction."""
        return (self.end - self.start) / self.period


def is_loop(text: str, *, truncated: bool = False) -> bool:
    """Whether an output is a loop by the rule above; ``truncated`` where the token limit cut it."""
    return find_loop(text, truncated=truncated) is not None


def find_loop(text: str, *, truncated: bool = False) -> Stretch | None:
    """The stretch that makes an output a loop; None for an honest one."""
    # What follows the last repeat is often white space that the chat template or a stop string left.
    body = text if truncated else text.rstrip()
    last = _stretch_at(body, len(body))
    if last is not None:
        repeats, length = (4, 160) if truncated else (12, 300)
        if last.repeats >= repeats and last.end - last.start >= length:
            return last
    for stretch in _stretches(body):
        length = stretch.end - stretch.start
        if stretch.repeats >= 20 and length >= max(500, len(body) / 2):
            return stretch
    return _numbered(body) if truncated else None


def _numbered(text: str) -> Stretch | None:
    """A stretch that repeats but for its numbers; its indices are those of the text with the numbers replaced."""
    masked = _NUMBER.sub("0", text)
    stretch = _stretch_at(masked, len(masked))
    if stretch is None or stretch.repeats < 8:
        return None
    unit = masked[stretch.end - stretch.period : stretch.end]
    return stretch if sum(map(str.isalpha, unit)) >= 20 else None


def _stretches(text: str) -> Iterator[Stretch]:
    at = _STEP
    while at < len(text):
        stretch = _stretch_at(text, at)
        if stretch is not None:
            stretch = Stretch(stretch.start, _extend_right(text, stretch), stretch.period)
            yield stretch
            at = max(at, stretch.end)
        at += _STEP


def _stretch_at(text: str, end: int) -> Stretch | None:
    """The periodic stretch that ends at ``end``, of the smallest period: where its last characters occurred before."""
    begin = end - _ANCHOR
    if begin < 1:
        return None
    before = text.rfind(text[begin:end], max(0, begin - LONGEST_UNIT), end - 1)
    if before < 0:
        return None
    period = begin - before
    start = before
    while start > 0 and text[start - 1] == text[start - 1 + period]:
        start -= 1
    return Stretch(start, end, period)


def _extend_right(text: str, stretch: Stretch) -> int:
    end = stretch.end
    while end < len(text) and text[end] == text[end - stretch.period]:
        end += 1
    return end

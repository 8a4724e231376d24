"""Where a text says "the answer is": the markers that number, math and choice scoring share. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_WORD = (
    r"(?:(?:final|correct|right|best|true)\s+)*(?:answer|result|solution)(?:\s+(?:to|for)\s[^.:\n]{1,60}?)?"
    r"(?:\s+(?:here|choice|option|letter))?"
    r"|(?:final|correct|right|best)\s+(?:option|choice|letter|statement)(?:\s+here)?"
    r"|choice|Antwort|Ergebnis|respuesta|réponse|risposta|resposta|ответ"
)
_CJK_WORD = r"(?:最终|正确|最后)?(?:的)?(?:答案|选项)|答え|正解|정답"
_LINK = (
    r"(?:[\"'”]?\s*(?:\*\*|__)?\s*(?::|=>|=|→|>)"
    r"|\s+(?=\(?[A-J]\)?[.!]?\s*$)"
    r"|\s+-\s"
    r"|(?:,[^.,\n]{1,20},)?\s+(?:is|are|was|would\s+be|should\s+be|must\s+be|will\s+be|equals|ist|lautet|es|est|è|é)\b\s*:?"
    r"|\s*(?:应该是|应该选|应为|应选|就是|是|为|选(?!项)|選|は|은|는)\s*:?"
    r"|\s*[】\]]\s*:?"
    r"|(?=不是|并非)"
    r"|\s*(?:\*\*|__)?[ \t]*\n)"
)
_LONGEST = 500
"""Characters behind an announcement in which an answer starts."""

_MARKER = re.compile(rf"(?<![^\W_])(?:{_WORD}){_LINK}|(?:{_CJK_WORD}){_LINK}", re.IGNORECASE | re.MULTILINE)


_HEDGE = re.compile(
    r"\b(?:if|unless|suppose|thought|think(?:s|ing)?|initially|at\s+first|tempting|tempted|mistaken(?:ly)?|maybe|perhaps|"
    r"might|could|not|n't|never|whether)\b|如果|假如|若|不认为|以为",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One place that announces an answer.

    Attributes:
        start: where the announcing words start.
        end: where what they announce starts.
        own_line: whether nothing but decoration stands before it on its line.
        hedged: whether its sentence weighs or denies rather than states: "if ...", "I first thought ...".
    """

    start: int
    end: int
    own_line: bool
    hedged: bool = False


def statements(text: str) -> Iterator[Statement]:
    """All announcements of an answer in a text, in order.

    A line that ends with the word is one only as a heading: in "and that is the answer" nothing is announced.
    """
    for match in _MARKER.finditer(text):
        line = _line_before(text, match.start())
        own_line = not re.search(r"\w", line.removesuffix("My ").removesuffix("The "))
        if own_line or not match.group().endswith("\n"):
            yield Statement(match.start(), match.end(), own_line, is_hedged(text, match.start()))


def in_order_of_weight(found: Iterable[Statement]) -> list[Statement]:
    """The last firm statement first; those that only weigh an answer after all firm ones."""
    return sorted(found, key=lambda statement: (statement.hedged, -statement.start))


def is_hedged(text: str, place: int) -> bool:
    """Whether the sentence before a place weighs or denies what follows, rather than states it."""
    sentence = re.split(r"[.!?;。！？；]\s*", _line_before(text, place))[-1]
    return bool(_HEDGE.search(sentence))


def _line_before(text: str, place: int) -> str:
    before = text[max(0, place - _LONGEST) : place]
    return before[before.rfind("\n") + 1 :]


def announced(text: str, statement: Statement) -> str:
    """What a statement announces: the rest of its line, or the next line that holds anything."""
    for line in text[statement.end : statement.end + _LONGEST].split("\n"):
        content = line.strip().lstrip("*_#: \t")
        if content:
            return content
    return ""

"""What all scorers do to a model's text before they look for the answer. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from specforge.scoring.thinking import split_thinking

ENDING_CHARACTERS = 20_000
_MOST_BOXES = 20
_SPECIAL_TOKENS = re.compile(r"<\|[a-z_]+\|>|</s>|<end_of_turn>")
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*(?=\{)|\\boxed\s*(?=-?\d)")
_BARE_CONTENT = re.compile(r"-?(?:\d|[.,]\d)+")
_DASHES = dict.fromkeys(map(ord, "−‐‑﹣－–"), "-")
_POWERS = re.compile("[⁰¹²³⁴-⁹]+")
_NARROW_SPACE = re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")
_BETWEEN_BOXES = re.compile(r"(?:[a-z]\s*=|[\s,;$.*]|and|or|\\[()\[\],;! ]|\\q?quad|\\text\{\s*(?:,|and|or)?\s*\})*\Z")


def visible(text: str) -> str:
    """The text as a reader sees it: without what the model thought and without leftover special tokens."""
    return _SPECIAL_TOKENS.sub("", split_thinking(text).answer).strip()


def ending(text: str) -> str:
    """The part of a visible text that an answer is looked for in: a loop of a hundred thousand characters has none."""
    return text[-ENDING_CHARACTERS:]


def plain(text: str) -> str:
    """Compatibility forms folded (full-width letters and digits, ligatures), every dash a minus sign.

    Powers such as ``²`` become ``^2``, since folding alone would make digits of them; narrow spaces within a number
    become commas.
    """
    text = _NARROW_SPACE.sub(",", _POWERS.sub(_power, text))
    return unicodedata.normalize("NFKC", text.translate(_DASHES)).translate(_DASHES)


def _power(match: re.Match[str]) -> str:
    digits = unicodedata.normalize("NFKC", match.group())
    return f"^{digits}" if len(digits) == 1 else f"^{{{digits}}}"


@dataclass(frozen=True, slots=True)
class Box:
    r"""One ``\boxed{...}``.

    Attributes:
        content: what stands inside; None where its brace is never closed.
        start: where the command starts in the text.
        end: behind its closing brace, or the text's end.
    """

    content: str | None
    start: int
    end: int


def boxes(text: str) -> list[Box]:
    r"""All outermost ``\boxed``, ``\fbox`` and ``\framebox`` of a text in order, their braces matched."""
    found: list[Box] = []
    for match in _BOX.finditer(text):
        if found and match.start() < found[-1].end:
            continue
        if text[match.end()] == "{":
            end = closing_brace(text, match.end())
            content = None if end is None else text[match.end() + 1 : end]
            found.append(Box(content, match.start(), len(text) if end is None else end + 1))
        else:
            token = _BARE_CONTENT.match(text, match.end())
            end = token.end() if token else match.end()
            found.append(Box(text[match.end() : end], match.start(), end))
    return found


def closing_brace(text: str, start: int) -> int | None:
    r"""The index of the brace that closes the one at ``start``; ``\{`` and ``\}`` do not count. None: never closed."""
    depth = 0
    position = start
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if not depth:
                return position
        position += 1
    return None


def last_box(text: str) -> Box | None:
    r"""The last box; boxes with nothing but a comma or "and" between them are one list. None: the text has no box."""
    found = boxes(text)[-_MOST_BOXES:]
    if not found:
        return None
    last = found.pop()
    while found and last.content is not None:
        earlier = found.pop()
        between = text[earlier.end : last.start]
        same_line = "\n" not in between.strip() and len(between) < 60 and bool(between.strip(" \n$.*"))
        if earlier.content is None or not same_line or not _BETWEEN_BOXES.match(between):
            break
        content = last.content if earlier.content == last.content else f"{earlier.content}, {last.content}"
        last = Box(content, earlier.start, last.end)
    return last

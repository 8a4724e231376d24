"""Scores short answers by normalized match: is the reference what the text answers with?

This is an approximation, named as such by the scorer's name: a text may say the right thing in other words, or mention
it without meaning it. A judge model (:mod:`specforge.scoring.judge`) reads better.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from specforge.scoring.numbers import numbers, only_number
from specforge.scoring.score import Answer, Score, verdict
from specforge.scoring.statements import announced, in_order_of_weight, statements
from specforge.scoring.text import ending, last_box, plain, visible

_ARTICLES = frozenset({"a", "an", "the"})
_MONTHS = frozenset(
    {"january", "february", "march", "april", "may", "june"}
    | {"july", "august", "september", "october", "november", "december"}
)
_REFUSAL = re.compile(
    r"\b(?:i (?:do not|don't|am not|cannot|can't|could not|couldn't)|i'm (?:not|unable|sorry)|unable to|no information|"
    r"not (?:sure|certain|available|known)|unknown)\b",
    re.IGNORECASE,
)
LONG_WORDS = 60
"""Of an answer with more words and no announced answer, only the first and the last paragraph are read."""


class ShortAnswerScorer:
    """Looks for the reference as whole words in the answer; numbers and dates by value."""

    name = "short-answer match"

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Scores each answer by itself."""
        return [verdict(answer, *judge(answer.last, str(answer.reference))) for answer in answers]


def judge(output: str, reference: str) -> tuple[bool, str | None, str]:
    """Verdict, answer and reason for one output."""
    answer, where = short_answer(output)
    if answer is None:
        return False, None, where
    matched = matches(answer, reference)
    return matched, answer[:200], f"{where}; {'has' if matched else 'lacks'} {reference!r}"


def short_answer(output: str) -> tuple[str | None, str]:
    """The part of an output that answers, and where it stood; or None and why there is none."""
    text = plain(ending(visible(output)))
    if not text:
        return None, "empty output"
    box = last_box(text)
    if box is not None:
        return (box.content, "boxed") if box.content else (None, "the last box is cut off or empty")
    for statement in in_order_of_weight(statements(text)):
        content = announced(text, statement) if statement.own_line else ""
        if content:
            return content, "stated as the answer"
    if len(text.split()) > LONG_WORDS:
        paragraphs = re.split(r"\n\s*\n", text)
        text = "\n".join(dict.fromkeys((paragraphs[0], paragraphs[-1])))
    if _REFUSAL.search(text) and len(text.split()) <= LONG_WORDS:
        return None, "not attempted"
    return text, "the text"


def matches(answer: str, reference: str) -> bool:
    """Whether the reference's words stand together in the answer, or its number or date by value."""
    number = only_number(reference)
    if number is not None:
        return any(found.value == number.value for found in numbers(plain(answer)))
    wanted, found = _words(reference), _words(answer)
    if not wanted:
        return False
    if _stand_together(wanted, found):
        return not _denied(wanted, found)
    return any(word in _MONTHS for word in wanted) and len(wanted) <= 4 and set(wanted) <= set(found)


def _stand_together(wanted: list[str], found: list[str]) -> bool:
    length = len(wanted)
    return any(found[start : start + length] == wanted for start in range(len(found) - length + 1))


def _denied(wanted: list[str], found: list[str]) -> bool:
    """Whether every place has "not" right before it."""
    length = len(wanted)
    places = [start for start in range(len(found) - length + 1) if found[start : start + length] == wanted]
    return all(start and found[start - 1] == "not" for start in places)


def _words(text: str) -> list[str]:
    """Words in lower case without accents, articles, thousands separators and ordinal endings."""
    folded = unicodedata.normalize("NFKD", plain(text).casefold())
    bare = "".join(character for character in folded if not unicodedata.combining(character))
    bare = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", bare)
    bare = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", bare)
    bare = re.sub(r"\.(?=[a-z]\b)|['’]", "", bare)
    return [word for word in re.findall(r"[^\W_]+", bare) if word not in _ARTICLES]

"""Scores FinanceQA's answers: mostly one number with a unit, a sign, a percent sign or a scale word.

The number counts as right within :data:`TOLERANCE`. A scale that only one side names is taken from the other, since
filings say "in millions" once for a whole table. Answers that are no number are matched as short answers. An
approximation, named as such by the scorer's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from specforge.scoring.numbers import Number, numbers, shown
from specforge.scoring.score import Answer, Score, verdict
from specforge.scoring.short import matches, short_answer
from specforge.scoring.text import plain

TOLERANCE = Fraction(5, 1000)
"""Relative: half a percent, which intermediate rounding costs and a wrong formula seldom stays within."""

_DOWN = re.compile(
    r"\b(?:decreas\w*|declin\w*|loss\w*|lower|fell|fall\w*|drop\w*|down|negative|outflow\w*)\b", re.IGNORECASE
)
_SCALES = tuple(Fraction(10) ** power for power in (3, 6, 9, 12))
# Years and notes' numbers, which stand beside the figure that is meant.
_YEAR = re.compile(r"(?:19|20)\d\d")


class FinanceScorer:
    """Compares the number that is stated with the reference's."""

    name = "finance-number match"

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Scores each answer by itself."""
        return [verdict(answer, *judge(answer.last, str(answer.reference))) for answer in answers]


def judge(output: str, reference: str) -> tuple[bool, str | None, str]:
    """Verdict, answer and reason for one output."""
    answer, where = short_answer(output)
    if answer is None:
        return False, None, where
    gold = _figure(plain(reference), last=False)
    if gold is None or _is_prose(reference, gold):
        matched = matches(answer, reference)
        return matched, answer[:200], f"{where}; {'has' if matched else 'lacks'} the words of {reference[:80]!r}"
    ours = plain(answer)
    found = _figure(ours, last=where == "the text")
    if found is None:
        return False, None, f"no number in the answer ({where})"
    signs = (1, -1) if bool(_DOWN.search(ours)) != bool(_DOWN.search(reference)) else (1,)
    equal = any(same_figure(_signed(gold), sign * _signed(found), gold, found) for sign in signs)
    label = f"{shown(_signed(found))}{'%' if found.percent else ''}"
    return equal, label, f"{where}; reference {reference.strip()[:80]}"


def same_figure(gold: Fraction, value: Fraction, gold_number: Number, number: Number) -> bool:
    """Whether two figures agree within the tolerance, percent signs and scale words reconciled."""
    values = [value]
    if gold_number.percent != number.percent:
        values.append(value * 100 if gold_number.percent else value / 100)
    if gold_number.scaled != number.scaled and not (gold_number.percent or number.percent):
        values += [value * scale if gold_number.scaled else value / scale for scale in _SCALES]
    return any(_close(gold, candidate) for candidate in values)


def _close(gold: Fraction, value: Fraction) -> bool:
    return abs(gold - value) <= TOLERANCE * abs(gold)


def _signed(number: Number) -> Fraction:
    """Accountants write a negative number in parentheses."""
    return -number.value if number.bracketed else number.value


def _figure(text: str, last: bool) -> Number | None:
    """The number that is meant: the first or last that is no bare year, behind the last ``=`` where there is one."""
    start = text.rfind("=") + 1
    found = list(numbers(text[start:], scale_letters=True)) or list(numbers(text, scale_letters=True))
    figures = [number for number in found if not _is_year(number)] or found
    if not figures:
        return None
    return figures[-1] if last else figures[0]


def _is_year(number: Number) -> bool:
    plain_integer = not (number.currency or number.percent or number.scaled)
    return plain_integer and bool(_YEAR.fullmatch(shown(number.value)))


def _is_prose(reference: str, figure: Number) -> bool:
    """Whether the reference explains rather than states a figure."""
    rest = reference[: figure.start] + reference[figure.end :]
    return len(re.findall(r"[A-Za-z]{2,}", rest)) > 8

"""Reads numbers as people write them: signs, separators, currencies, percent, scale words, fractions, powers of ten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from specforge.scoring.text import plain

SCALES = {
    "hundred": 2,
    "thousand": 3,
    "k": 3,
    "million": 6,
    "millions": 6,
    "mn": 6,
    "mm": 6,
    "m": 6,
    "billion": 9,
    "billions": 9,
    "bn": 9,
    "b": 9,
    "trillion": 12,
    "trillions": 12,
    "tn": 12,
}
"""Scale words, and the power of ten that each stands for; the letters are used in finance."""

MOST_DIGITS = 100
"""A number with more, or with such a power of ten, comes from a loop, and is no number here."""

_WORDS = r"hundred|thousand|millions?|billions?|trillions?"
_LETTERS = r"mn|bn|tn|mm|[kKmMbB]"
_DIGITS = r"\d{1,3}(?:(?:,\\!|\{,\}|\\,|\\ |[,'])\d{3})+(?!\d)|\d+"
_UNSIGNED = rf"(?:(?:{_DIGITS})(?:\.\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"""
    (?P<open>\()?
    (?<![\w.^])(?P<sign>[-+](?=\\?[$€£¥]|\d|\.\d|\\[dt]?frac))?
    (?P<currency>\\?[$€£¥]|US\$|USD|EUR|Rs\.?)?\s?
    (?P<sign2>(?<=[$€£¥])[-+])?
    (?:
        \\[dt]?frac\{{(?P<latex_top>-?[\d.,]+)\}}\{{(?P<latex_bottom>[\d.,]+)\}}
      | (?P<whole>\d+)\s(?P<top>\d+)/(?P<bottom>\d+)(?![\d/])
      | (?P<over>{_UNSIGNED})\s?/\s?(?P<under>[1-9]\d*)(?![\d/.])
      | (?P<value>{_UNSIGNED})
        (?:\s?(?:\\times|\\cdot|[×*x])\s?10\^\{{?(?P<power>[-+]?\d+)\}}?|[eE](?P<exponent>[-+]?\d+)\b)?
    )
    (?P<close>\))?
    (?P<percent>\s?\\?%|\s?(?:percent|per\ cent)\b)?
    (?:(?:\s|-)?(?P<word>{_WORDS})\b|\s?(?P<letter>{_LETTERS})\b)?
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """One number found in a text.

    Attributes:
        value: its exact value, scale words applied, the percent sign not.
        percent: whether a percent sign or word follows.
        currency: whether a currency sign stands before it.
        scaled: whether a scale word or letter was applied.
        bracketed: whether parentheses enclose it with nothing else, as accountants write negative numbers.
        start: where it starts in the text.
        end: behind its last character.
    """

    value: Fraction
    percent: bool
    currency: bool
    scaled: bool
    bracketed: bool
    start: int
    end: int


def numbers(text: str, scale_letters: bool = False) -> Iterator[Number]:
    """All numbers of a text in order. A minus between two operands is an operator, not a sign.

    Args:
        text: folded by :func:`specforge.scoring.text.plain`.
        scale_letters: whether ``5M`` is five million; the words always count.
    """
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is None:
            continue
        if "-" in (match["sign"] or "", match["sign2"] or ""):
            value = -value
        scale = match["word"] or (match["letter"] if scale_letters else None)
        if scale:
            value *= 10 ** SCALES[scale.lower()]
        end = match.end() if scale or not match["letter"] else match.start("letter")
        yield Number(
            value,
            percent=bool(match["percent"]),
            currency=bool(match["currency"]),
            scaled=bool(scale),
            bracketed=bool(match["open"] and match["close"]),
            start=match.start(),
            end=end,
        )


def only_number(text: str) -> Number | None:
    """The number that the text consists of, a final full stop aside; None where there is anything else."""
    stripped = plain(text).strip().rstrip(".").strip()
    found = next(numbers(stripped), None)
    return found if found is not None and found.start == 0 and found.end == len(stripped) else None


def _value(match: re.Match[str]) -> Fraction | None:
    """The number's value without its sign and scale; None for a division by zero and for what no answer is."""
    if any(len(digits or "") > MOST_DIGITS for digits in match.groupdict().values()):
        return None
    if match["latex_top"]:
        return _ratio(match["latex_top"], match["latex_bottom"])
    if match["whole"]:
        part = _ratio(match["top"], match["bottom"])
        return None if part is None else int(match["whole"]) + part
    if match["over"]:
        return _ratio(match["over"], match["under"])
    power = int(match["power"] or match["exponent"] or 0)
    return None if abs(power) > MOST_DIGITS else Fraction(_digits(match["value"])) * Fraction(10) ** power


def _ratio(top: str, bottom: str) -> Fraction | None:
    try:
        return Fraction(_digits(top)) / Fraction(_digits(bottom))
    except (ValueError, ZeroDivisionError):
        return None


def _digits(text: str) -> str:
    return re.sub(r"[^\d.-]", "", text)


def shown(value: Fraction) -> str:
    """The number as a row shows it: an integer, a short decimal, or a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    decimal = f"{float(value):.10f}".rstrip("0") if abs(value) < 10**15 else str(float(value))
    return decimal if Fraction(decimal) == value else f"{value.numerator}/{value.denominator}"

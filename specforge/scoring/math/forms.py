r"""One spelling for mathematical answers, so that what differs only in notation compares equal as text.

Units, degree and currency signs, thousands separators, fonts, spacing and ``\left``/``\right`` carry no value here; a
percent sign is told apart (:func:`canonical` keeps it). Pure functions.
"""

from __future__ import annotations

import re

from specforge.scoring.text import closing_brace, plain

_SYMBOLS = {
    "π": r"\pi ",
    "∞": r"\infty ",
    "√": r"\sqrt ",
    "≤": r"\leq ",
    "≥": r"\geq ",
    "≠": r"\neq ",
    "≈": r"\approx ",
    "×": r"\cdot ",
    "·": r"\cdot ",
    "÷": "/",
    "±": r"\pm ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "°": r"^\circ ",
    "θ": r"\theta ",
    "α": r"\alpha ",
    "β": r"\beta ",
    "λ": r"\lambda ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "⁄": "/",
}
_FONTS = r"\\(?:math(?:rm|bf|it|sf|bb|cal)|text(?:bf|it|rm|sf)|boldsymbol|bm|operatorname\*?|rm|bf|it)"
_TEXT = r"\\(?:text|mbox|textrm|textnormal|mathrm|hbox)"
_SPACING = re.compile(
    r"(?<!\\)\\(?:[!,;:> ]|quad|qquad|displaystyle|textstyle|limits|left|right|[bB]igg?[lrm]?)(?![a-zA-Z])|~|\\\\\s*\Z"
)
_UNIT_WORDS = (
    "degrees?|radians?|percent|per ?cent|dollars?|cents?|units?|square ?units?|cubic ?units?|inch(?:es)?|in|feet|foot|"
    "ft|yards?|miles?|mph|mm|cm|dm|km|meters?|metres?|centimeters?|kilometers?|grams?|kg|kilograms?|pounds?|lbs?|"
    "ounces?|oz|liters?|litres?|ml|seconds?|sec|minutes?|min|hours?|hrs?|days?|weeks?|months?|years?|"
    "(?:sq(?:uare)?|cu(?:bic)?)\\.? ?(?:inches|feet|units|meters|centimeters|cm|m|ft|in)"
)
# A unit of one letter needs a space: 5m may be a product.
_UNIT = re.compile(rf"(?<=[\d}})])(?:\s*(?:{_UNIT_WORDS})|\s+[mghs])(?:\s*\^?\s*[23])?\s*\Z", re.IGNORECASE)
_TEXT_UNIT = re.compile(rf"(?<=\S)\s*{_TEXT}\s*\{{(?P<unit>[^{{}}]*)\}}(?:\s*\^\s*\{{?\d\}}?)?\s*\Z")
# "16 apples": any other words behind a number and a space, but for names of functions and constants.
_OTHER_UNIT = re.compile(
    r"(?<=\d)\s+(?!(?:a?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|exp|pi|sqrt|mod|choose|theta|max|min|gcd|lcm|infinity)\b)"
    r"[A-Za-z]{3,}(?:\s+[A-Za-z]+)*\s*\Z"
)
_LEADING_TEXT = re.compile(rf"\s*{_TEXT}\s*\{{[^{{}}\d]*\}}\s*(?=[-\d\\])")
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-zA-Z])")
_CONNECTIVE = re.compile(rf"{_TEXT}\s*\{{\s*(?:,?\s*(?:and|or),?|,)\s*\}}|\s(?:and|or)\s")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\\!\s*|\{,\}|\\,|\\!|,\s?)\d{3})+(?![\d]|,\s*\d)")
_SAFE_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\\!\s*|\{,\}|\\,)\d{3})+(?!\d)")
_BRACKETED = re.compile(r"[(\[{]")


def canonical(answer: str) -> str:
    """The one spelling of an answer in LaTeX or plain text; a percent sign stays, as ``%`` at the end."""
    text = _unwrapped(answer)
    for symbol, latex in _SYMBOLS.items():
        text = text.replace(symbol, latex)
    text = plain(text)
    # "1,234" is one number, but "(1,234)" may be a pair: there only separators that TeX keeps tight are dropped.
    thousands = _SAFE_THOUSANDS if _BRACKETED.search(text.replace("{,}", "")) else _THOUSANDS
    text = thousands.sub(lambda match: re.sub(r"\D", "", match.group()), text)
    text = text.replace(r"\$", "").replace("$", "").replace(r"\%", "%")
    text = _SPACING.sub(" ", _CONNECTIVE.sub(", ", text))
    text = _DEGREES.sub("", text)
    text = _without_units(_LEADING_TEXT.sub("", text))
    text = _without_fonts(text)
    text = re.sub(r"\\[dtc]frac(?![a-zA-Z])", r"\\frac", text)
    text = _braced_arguments(text)
    text = re.sub(r"\\(?:leq|le|leqslant)(?![a-zA-Z])", r"\\leq ", text)
    text = re.sub(r"\\(?:geq|ge|geqslant)(?![a-zA-Z])", r"\\geq ", text)
    text = re.sub(r"\\(?:times|ast)(?![a-zA-Z])", r"\\cdot ", text)
    text = re.sub(r"\\(?:lbrace|rbrace)(?![a-zA-Z])", lambda m: r"\{" if "l" in m.group()[:2] else r"\}", text)
    text = re.sub(r"\\(?:lbrack|rbrack)(?![a-zA-Z])", lambda m: "[" if m.group().startswith(r"\l") else "]", text)
    text = re.sub(r"([_^])\{(\w)\}", r"\1\2", text)
    text = re.sub(r"(?<![\d.])\.(?=\d)", "0.", text)
    return _without_spaces(text).rstrip(".,;\\")


def words(answer: str) -> str | None:
    r"""The words of an answer that is text, in lower case: ``\text{East}`` and ``east.`` are ``east``; else None."""
    text = _without_fonts(_unwrapped(answer)).replace("$", "")
    text = re.sub(r"\\[,;:! ]|~", " ", text).strip().strip(".,;").strip()
    text = text[1:-1] if re.fullmatch(r"\([A-Za-z]\)", text) else text
    if not re.fullmatch(r"[^\W\d_]+(?:[\s'’-]+[^\W\d_]+)*", text):
        return None
    return re.sub(r"\s+", " ", text).casefold()


def is_text(answer: str) -> bool:
    r"""Whether an answer is text and no product of letters: it stands in ``\text``, or has a word of four letters."""
    found = words(answer)
    if found is None:
        return False
    return bool(re.match(rf"\s*\$?\s*{_TEXT}", answer)) or any(len(word) > 3 for word in found.split())


def _unwrapped(text: str) -> str:
    """Without the delimiters, bold marks and full stop around the whole of it."""
    text = text.strip()
    while True:
        before = text
        text = text.strip().strip("`").removesuffix(".").strip()
        for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("__", "__")):
            if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) + len(closing):
                inner = text[len(opening) : -len(closing)]
                if opening not in inner and closing not in inner:
                    text = inner
        if text == before:
            return text


def _without_units(text: str) -> str:
    while True:
        before = text
        text = text.strip().rstrip(".").strip()
        percent = text.endswith("%")
        text = _TEXT_UNIT.sub("", text)
        text = text if percent else _OTHER_UNIT.sub("", _UNIT.sub("", text))
        if text == before:
            return text


def _without_fonts(text: str) -> str:
    r"""Font commands and ``\text`` taken off their arguments."""
    pattern = re.compile(rf"(?:{_FONTS}|{_TEXT})(?![a-zA-Z])\s*")
    while match := pattern.search(text):
        inner, end = text[match.end() :], None
        if inner.startswith("{"):
            end = closing_brace(text, match.end())
        if end is None:
            text = text[: match.start()] + " " + inner
        else:
            text = text[: match.start()] + text[match.end() + 1 : end] + text[end + 1 :]
    return text


def _braced_arguments(text: str) -> str:
    r"""``\frac43`` as ``\frac{4}{3}``, ``\sqrt2`` as ``\sqrt{2}``, and a plain ``1/2`` as ``\frac{1}{2}``."""
    text = re.sub(
        r"\\frac\s*(?!\s*\{)(\d|[a-zA-Z])\s*(?:(\d|[a-zA-Z])|(?=\{))",
        lambda m: rf"\frac{{{m[1]}}}" + (f"{{{m[2]}}}" if m[2] else ""),
        text,
    )
    text = re.sub(r"(\\frac\{[^{}]*\})\s*(\d|[a-zA-Z])", r"\1{\2}", text)
    text = re.sub(r"\\sqrt\s*(\d|[a-zA-Z])", r"\\sqrt{\1}", text)
    return re.sub(r"(?<![\w./}])(\d+)\s*/\s*(\d+)(?![\w./])", r"\\frac{\1}{\2}", text)


def _without_spaces(text: str) -> str:
    """Spaces matter only after a command's name and between digits."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"(\\[a-zA-Z]+) (?=[a-zA-Z])", "\\1\0", text)
    text = re.sub(r"(?<=\d) (?=\d)", "\1", text)
    return text.replace(" ", "").replace("\0", " ").replace("\1", " ")

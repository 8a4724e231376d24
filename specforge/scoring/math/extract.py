r"""Which part of a model's text is its mathematical answer. Pure functions."""

from __future__ import annotations

import re

from specforge.scoring.numbers import numbers
from specforge.scoring.statements import announced, in_order_of_weight, statements
from specforge.scoring.text import ending, last_box, plain, visible

_INLINE = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


def find_answer(output: str) -> tuple[str | None, str]:
    r"""The answer's text and where it stood; or None and why there is none.

    In this order: the last ``\boxed`` (one that is cut off is no answer, and no earlier one takes its place); what the
    last statement of an answer announces; of the last paragraph, what is in bold, the last formula, the last number.
    """
    text = ending(visible(output))
    if not text:
        return None, "empty output"
    box = last_box(text)
    if box is not None:
        if box.content is None:
            return None, "the last box is cut off"
        content = box.content.strip()
        return (content, "boxed") if content else (None, "the last box is empty")
    for statement in in_order_of_weight(statements(text)):
        content = _formula_of(announced(text, statement))
        if content:
            return content, "stated as the answer"
    paragraph = re.split(r"\n\s*\n", text)[-1]
    bold = [found for found in _BOLD.findall(paragraph) if re.search(r"[\d\\$]", found)]
    if bold:
        return _formula_of(bold[-1]), "in bold"
    formulas = [next(filter(None, groups)) for groups in _INLINE.findall(paragraph)]
    if formulas:
        return formulas[-1].strip(), "the last formula"
    folded = plain(paragraph)
    found = [folded[number.start : number.end] for number in numbers(folded)]
    return (found[-1].strip(" ()"), "the last number") if found else (None, "no answer")


def _formula_of(sentence: str) -> str:
    """The first formula of an announcement, else its first clause, bold marks off."""
    formula = _INLINE.search(sentence)
    if formula:
        return str(next(filter(None, formula.groups()))).strip()
    clause = re.split(r"\.(?:\s|$)|;|。|\s(?:because|since|as|which|so)\s", sentence, maxsplit=1)[0]
    return clause.replace("**", "").strip().strip("*_` ").rstrip(".,:")

r"""What a mathematical answer is made of: a list, set, tuple, interval, union or matrix, down to single expressions.

Two answers are compared part by part, so that brackets, order and number of parts count, and only single expressions
are left to an algebra system. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from specforge.scoring.math.forms import canonical, is_text, words
from specforge.scoring.numbers import only_number

Symbolic = Callable[[str, str], bool]
"""Whether two single expressions in canonical LaTeX are equal: an algebra system's word."""

LONGEST = 2000
"""Characters of an answer that is compared by meaning; a longer one comes from a loop."""

_MATRIX = re.compile(r"\\begin\{([pbvBV]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}\Z", re.DOTALL)
_VARIABLE = r"(?:[a-zA-Z]|\\[a-z]+)(?:_\w)?(?:\([a-zA-Z]\))?"
_MEMBERSHIP = re.compile(rf"{_VARIABLE}\s*(?:\\in\s*|=)(?=[(\[]|\\\{{)")
_BOUND = r"(?:-?\\?[\w.{}\\+*/^-]+?)"
_BETWEEN = re.compile(rf"(?P<low>{_BOUND})(?P<left><|\\leq\s?){_VARIABLE}(?P<right><|\\leq\s?)(?P<high>{_BOUND})\Z")
_ONE_SIDED = re.compile(rf"{_VARIABLE}(?P<sign><|>|\\leq\s?|\\geq\s?)(?P<bound>{_BOUND})\Z")
_BASE = re.compile(r"([0-9A-F]+)_\{?(\d+)\}?\Z")
_CLOCK = re.compile(r"\d{1,2}:\d\d")


@dataclass(frozen=True, slots=True)
class Parts:
    """A compound answer.

    Attributes:
        kind: ``list`` (values in any order, a set as well), ``tuple`` (an interval as well), ``union`` or ``matrix``.
        items: the parts' canonical text; a matrix's, row by row.
        shape: a tuple's brackets, or a matrix's number of columns.
    """

    kind: str
    items: tuple[str, ...]
    shape: str = ""


def equivalent(gold: str, answer: str, symbolic: Symbolic) -> bool:
    """Whether two answers mean the same, where notation, units and the order of a list do not matter."""
    if max(len(gold), len(answer)) > LONGEST:
        return gold.strip() == answer.strip()
    gold_words = words(gold)
    if gold_words is not None and gold_words == words(answer):
        return True
    if is_text(gold) or is_text(answer):
        return False
    return _same(canonical(gold), canonical(answer), symbolic)


def _same(gold: str, answer: str, symbolic: Symbolic) -> bool:
    if gold == answer:
        return bool(gold)
    if not gold or not answer:
        return False
    gold, answer = _without_variable(gold, answer)
    ours, theirs = parts(gold), parts(answer)
    if isinstance(ours, Parts) and isinstance(theirs, str):
        theirs = interval(theirs) or theirs
    elif isinstance(theirs, Parts) and isinstance(ours, str):
        ours = interval(ours) or ours
    if isinstance(ours, str) and isinstance(theirs, str):
        return _same_expression(ours, theirs, symbolic)
    if isinstance(ours, str) and isinstance(theirs, Parts) and theirs.kind == "list":
        # One value given twice, as a mixed number and as a fraction, is one value.
        return all(_same(ours, item, symbolic) for item in theirs.items)
    if isinstance(ours, str) or isinstance(theirs, str):
        return False
    return _same_parts(ours, theirs, symbolic)


def _same_parts(ours: Parts, theirs: Parts, symbolic: Symbolic) -> bool:
    kinds = {ours.kind, theirs.kind}
    if kinds == {"tuple", "matrix"}:
        # A vector may be written as a point or as a column.
        matrix, point = (ours, theirs) if ours.kind == "matrix" else (theirs, ours)
        if matrix.shape != "1" or point.shape != "()":
            return False
    elif len(kinds) > 1 or ours.shape != theirs.shape:
        return False
    if len(ours.items) != len(theirs.items):
        return False
    if ours.kind in ("list", "union"):
        return _same_in_any_order(ours.items, theirs.items, symbolic)
    return all(_same(one, other, symbolic) for one, other in zip(ours.items, theirs.items, strict=True))


def _same_in_any_order(ours: Sequence[str], theirs: Sequence[str], symbolic: Symbolic) -> bool:
    left = list(theirs)
    for item in ours:
        place = next((place for place, other in enumerate(left) if _same(item, other, symbolic)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same_expression(gold: str, answer: str, symbolic: Symbolic) -> bool:
    if _CLOCK.search(gold) or _CLOCK.search(answer):
        return False
    in_base = _BASE.match(gold)
    if in_base:
        theirs = _BASE.match(answer)
        return in_base[1] == answer or (theirs is not None and in_base.groups() == theirs.groups())
    for candidate in _values(answer, gold):
        one, other = only_number(gold.rstrip("%")), only_number(candidate.rstrip("%"))
        if one is not None and other is not None:
            if _same_number(one.value, other.value, gold.endswith("%"), candidate.endswith("%")):
                return True
            continue
        if gold == candidate or symbolic(gold.rstrip("%"), candidate.rstrip("%")):
            return True
    return False


def _same_number(gold: Fraction, answer: Fraction, gold_percent: bool, answer_percent: bool) -> bool:
    """A percent sign may be left out; or the value may be written as a plain fraction of one."""
    if gold == answer:
        return True
    if gold_percent == answer_percent:
        return False
    return gold == answer * 100 if gold_percent else answer == gold * 100


def _values(answer: str, gold: str) -> list[str]:
    r"""What of ``256+37=293`` or ``\frac{7}{2}\approx 3.5`` may be the value: the last of each chain."""
    exact, *rounded = re.split(r"\\approx\s?", answer)
    found = [exact, *rounded] if exact else rounded
    return [value if "=" in gold else value.rpartition("=")[2] for value in found]


def _without_variable(gold: str, answer: str) -> tuple[str, str]:
    r"""Both without ``x\in``, and without ``x=`` where the other has none or the same."""
    gold, answer = (_MEMBERSHIP.sub("", text, count=1) if _MEMBERSHIP.match(text) else text for text in (gold, answer))
    pattern = re.compile(rf"({_VARIABLE})=(?!.*=)")
    ours, theirs = pattern.match(gold), pattern.match(answer)
    if ours and (not re.search(r"=|<|>|\\leq|\\geq", answer) or (theirs and ours[1] == theirs[1])):
        gold = gold[ours.end() :]
        answer = answer[theirs.end() :] if theirs else answer
    elif theirs and not ours and not re.search(r"=|<|>|\\leq|\\geq", gold):
        answer = answer[theirs.end() :]
    return gold, answer


def parts(text: str) -> Parts | str:
    """Takes a canonical answer apart, one level; the text itself where it is a single expression."""
    matrix = _MATRIX.match(text)
    if matrix:
        rows = [row for row in re.split(r"\\\\", matrix[2]) if row.strip()]
        cells = [[cell.strip() for cell in row.split("&")] for row in rows]
        if cells and len({len(row) for row in cells}) == 1:
            return Parts("matrix", tuple(cell for row in cells for cell in row), str(len(cells[0])))
    union = _split(text, r"\cup")
    if len(union) > 1:
        return Parts("union", tuple(part.strip() for part in union))
    listed = _split(text, ",")
    if len(listed) > 1:
        return Parts("list", tuple(value for item in listed for value in _signs(item)))
    if text.startswith(r"\{") and text.endswith(r"\}"):
        items = _split(text[2:-2], ",")
        return Parts("list", tuple(value for item in items for value in _signs(item)))
    angle = re.match(r"\\langle\s?(.*)\\rangle\Z", text)
    inner, brackets = (angle[1], "()") if angle else _bracketed(text)
    if inner is not None:
        items = _split(inner, ",")
        if len(items) > 1:
            return Parts("tuple", tuple(items), brackets)
        return parts(inner) if brackets == "()" and items[0] else text
    both = _signs(text)
    return Parts("list", tuple(both)) if len(both) > 1 else text


def interval(text: str) -> Parts | None:
    r"""An inequality in one variable as an interval: ``-2\leq x\leq 7`` is ``[-2,7]``; None for anything else."""
    between = _BETWEEN.match(text)
    if between:
        brackets = ("(" if between["left"] == "<" else "[") + (")" if between["right"] == "<" else "]")
        return Parts("tuple", (between["low"], between["high"]), brackets)
    one_sided = _ONE_SIDED.match(text)
    if not one_sided:
        return None
    sign, bound = one_sided["sign"].strip(), one_sided["bound"]
    if sign in (">", r"\geq"):
        return Parts("tuple", (bound, r"\infty"), ("(" if sign == ">" else "[") + ")")
    return Parts("tuple", (r"-\infty", bound), "(" + (")" if sign == "<" else "]"))


def _bracketed(text: str) -> tuple[str | None, str]:
    """What stands in the brackets that enclose the whole text, and these; half-open intervals mix them."""
    if len(text) < 3 or text[0] not in "([" or text[-1] not in ")]":
        return None, ""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if not depth and place < len(text) - 1:
            return None, ""
    return (text[1:-1], text[0] + text[-1]) if not depth else (None, "")


def _split(text: str, separator: str) -> list[str]:
    """Splits at the separators that no bracket encloses."""
    found, depth, start, place = [], 0, 0, 0
    while place < len(text):
        if not depth and text.startswith(separator, place):
            found.append(text[start:place])
            place += len(separator)
            start = place
            continue
        character = text[place]
        depth += (character in "([{") - (character in ")]}")
        place += 1
    return [*found, text[start:]]


def _signs(text: str) -> list[str]:
    r"""Both values of an expression with one ``\pm``."""
    if text.count(r"\pm") != 1:
        return [text]
    before, after = re.split(r"\\pm\s?", text)
    return [f"{before}+{after}" if before else after, f"{before}-{after}"]

r"""Scores answers that are one number, as in GSM8K.

The answer is, in this order: the number in the last ``\boxed``; behind the last ``####``; in the last line or sentence
that announces an answer; a number in bold in the last paragraph; the last number of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from specforge.errors import DatasetError
from specforge.scoring.numbers import numbers, only_number, shown
from specforge.scoring.score import Answer, Score, verdict
from specforge.scoring.statements import announced, in_order_of_weight, statements
from specforge.scoring.text import ending, last_box, plain, visible

_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


class NumberScorer:
    """Compares the number found with the reference, exactly."""

    name = "number"

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Scores each answer by itself."""
        return [verdict(answer, *judge(answer.last, str(answer.reference))) for answer in answers]


def judge(output: str, reference: str) -> tuple[bool, str | None, str]:
    """Verdict, answer and reason for one output.

    Raises:
        DatasetError: the reference is no number.
    """
    wanted = only_number(reference)
    if wanted is None:
        raise DatasetError(f"the reference {reference!r} is not a number")
    found, where = find_number(output)
    if found is None:
        return False, None, where
    return found == wanted.value, shown(found), f"{where}; reference {shown(wanted.value)}"


def find_number(output: str) -> tuple[Fraction | None, str]:
    """The number that the output gives as its answer, and where it stood, or why there is none."""
    text = plain(ending(visible(output)))
    if not text:
        return None, "empty output"
    box = last_box(text)
    if box is not None:
        if box.content is None:
            return None, "the last box is cut off"
        found = _first(re.sub(r"^\s*-\s+", "-", box.content))
        return found, "no number in the box" if found is None else "boxed"
    _, hashes, rest = text.rpartition("####")
    if hashes and _first(rest.split("\n")[0]) is not None:
        return _first(rest.split("\n")[0]), "after ####"
    for statement in in_order_of_weight(statements(text)):
        found = _first(announced(text, statement))
        if found is not None:
            return found, "stated as the answer"
    last_paragraph = re.split(r"\n\s*\n", text)[-1]
    for bold in reversed(_BOLD.findall(last_paragraph)):
        # Bold headings such as "Step 2" and "3. Total" are no answers.
        if re.match(r"[-+\\$€£¥\d.]", bold) and not re.match(r"\d+[.):]\s", bold) and _first(bold) is not None:
            return _first(bold), "in bold"
    found = next(iter(reversed([number.value for number in numbers(text)])), None)
    return found, "the last number" if found is not None else "no number"


def _first(text: str) -> Fraction | None:
    """The first number, of what stands behind the last ``=`` where there is one: ``9 * 2 = 18 dollars``."""
    right = text.rpartition("=")[2]
    found = next(numbers(right), None) or next(numbers(text), None)
    return None if found is None else found.value

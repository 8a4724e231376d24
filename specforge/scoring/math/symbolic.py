"""Equality of two single expressions by math-verify. Slow to import, and without a time limit: for the worker only."""

from __future__ import annotations

import logging

from latex2sympy2_extended import latex2sympy
from math_verify import verify


def equal(gold: str, answer: str) -> bool:
    """Whether two expressions in canonical LaTeX are equal; False where one of them can't be parsed as a whole.

    The parser is called directly, since math-verify's own ``parse`` falls back to a part of what it can't read, and the
    same half of two different answers would compare equal.
    """
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    try:
        parsed = [latex2sympy(text) for text in (gold, answer)]
    except Exception:  # the parser raises bare Exception, and whatever its transformations run into
        return False
    try:
        return bool(verify([parsed[0]], [parsed[1]], timeout_seconds=None))
    except Exception:  # SymPy can't compare them
        return False

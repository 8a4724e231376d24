"""Comparison of a program's output with the expected one, as LiveCodeBench's own checker does it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _numbers(line: str) -> list[Decimal] | None:
    try:
        return [Decimal(token) for token in line.split()]
    except (InvalidOperation, ValueError):
        return None


def same_output(printed: str, expected: str) -> bool:
    """Whether two outputs are the same: as many lines, each the same text or the same numbers.

    White space around the whole and around each line does not count. Numbers are compared token by token as
    decimals, exactly: ``1.0`` is ``1``, ``0.33`` is not ``0.333``.
    """
    got, wanted = _lines(printed), _lines(expected)
    if len(got) != len(wanted):
        return False
    for line, other in zip(got, wanted, strict=True):
        if line != other:
            numbers = _numbers(line)
            if numbers is None or numbers != _numbers(other):
                return False
    return True

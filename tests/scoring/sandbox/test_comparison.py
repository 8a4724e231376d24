"""Outputs are compared as LiveCodeBench's checker compares them."""

from __future__ import annotations

import pytest

from specforge.scoring.sandbox.guest.comparison import same_output


@pytest.mark.parametrize(
    "printed, expected, same",
    [
        ("3\n", "3", True),
        ("  3  \n\n", "3\n", True),
        ("1 2\n3\n", "1 2 \n3", True),
        ("1.0", "1", True),
        ("1  2", "1 2", True),
        ("0.50 2e3", "0.5 2000", True),
        ("-0", "0", True),
        ("0.33", "0.333", False),
        ("0.1", "0.1000000001", False),
        ("yes", "YES", False),
        ("a  b", "a b", False),
        ("a 1.0", "a 1", False),
        ("1\n2", "1 2", False),
        ("1\n\n2", "1\n2", False),
        ("1 2 3", "1 2", False),
        ("", "3", False),
        ("3", "", False),
        ("nan", "nan", True),
        ("nan", "1", False),
        ("1e999999999", "2", False),
    ],
)
def test_same_output(printed: str, expected: str, same: bool) -> None:
    assert same_output(printed, expected) is same

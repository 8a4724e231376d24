"""What the judge takes from the program, and what it keeps for itself."""

from __future__ import annotations

import pytest

from specforge.scoring.code.programs import names_under_test
from specforge.scoring.code.tasks import MbppTask


@pytest.mark.parametrize(
    "tests, setup, names, modules",
    [
        (("assert f(1) == 2",), "", ("f",), ()),
        (("assert set(f(1)) == set([2])",), "", ("f",), ()),
        (("assert abs(f(1) - 2) < 0.1", "assert len(f(1)) == 3"), "", ("f",), ()),
        (("assert sum(10, 15) == 6", "assert sum(1, 2) == abs(1)"), "", ("sum",), ()),
        (("assert math.isclose(f(1), 2.0)",), "", ("f",), ("math",)),
        (("assert math.isclose(f(1), 2.0)",), "import math", ("f",), ()),
        (("assert f([Pair(1, 2)]) == 3",), "", ("f", "Pair"), ()),
        (("assert depth(root) == 3",), "root = Node(1)\nroot.left = Node(2)", ("Node", "depth"), ()),
        (("assert f(is_even) == [2]",), "def is_even(n):\n    return n % 2 == 0", ("f",), ()),
        (("assert [f(x) for x in range(3)] == [0, 1, 2]",), "", ("f",), ()),
        (("assert random(3) == 4",), "", ("random",), ()),
    ],
)
def test_names_under_test(tests: tuple[str, ...], setup: str, names: tuple[str, ...], modules: tuple[str, ...]) -> None:
    found, used = names_under_test(MbppTask(tests, setup))

    assert set(found) == set(names)
    assert used == modules

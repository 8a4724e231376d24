"""What judge and program say to each other, without the sandbox around them: the program in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from specforge.scoring.code.programs import job_of
from specforge.scoring.code.tasks import CodeTask, HumanEvalTask, IoTest, LiveCodeTask, MbppTask
from specforge.scoring.sandbox.guest.judge import judge
from specforge.scoring.sandbox.guest.wire import Channel
from tests.support.processes import ROOT

PROGRAM = """
import socket, sys
from specforge.scoring.sandbox.guest import program, wire
getattr(program, sys.argv[1])(wire.Channel(socket.socket(fileno=int(sys.argv[2]))))
"""

DOUBLE = HumanEvalTask(
    prompt='def double(x):\n    """Twice x."""\n',
    test="def check(candidate):\n    assert candidate(2) == 4\n    assert candidate([1]) == [1, 1]\n",
    entry_point="double",
)
SORTED_IN_PLACE = MbppTask(tests=("items = [2, 1]\norder(items)\nassert items == [1, 2]",))
APPLIED = MbppTask(tests=("assert apply(lambda x: x + 1, 2) == 3", "assert apply(len, 'abc') == 3"))
COUNTED = MbppTask(tests=("assert list(count(3)) == [0, 1, 2]", "assert next(count(1)) == 0"))
POINTS = MbppTask(
    tests=(
        "p = Point(1, 2)\nassert p.x == 1\np.x = 5\nassert p.x == 5",
        "assert str(Point(1, 2)) == '(1, 2)' and len(Point(1, 2)) == 2 and Point(1, 2)[1] == 2",
        "q = Point(3, 4)\nassert q == q and q == Point(3, 4) and q != 3 and bool(q)",
    )
)
POINT = """
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def __str__(self): return f"({self.x}, {self.y})"
    def __len__(self): return 2
    def __getitem__(self, at): return (self.x, self.y)[at]
    def __eq__(self, other): return (self.x, self.y) == (other.x, other.y)
"""
RAISES = MbppTask(tests=("try:\n    fail()\nexcept KeyError as error:\n    assert 'lost' in str(error)",))
ADDED = LiveCodeTask(tests=(IoTest("1\n2", "3"), IoTest("[1]\n[2]", "[1, 2]")), func_name="add")

RIGHT: list[tuple[CodeTask, str]] = [
    (DOUBLE, "def double(x):\n    return x * 2\n"),
    (SORTED_IN_PLACE, "def order(items):\n    items.sort()\n"),
    (APPLIED, "def apply(function, value):\n    return function(value)\n"),
    (COUNTED, "def count(n):\n    yield from range(n)\n"),
    (POINTS, POINT),
    (RAISES, "def fail():\n    raise KeyError('lost')\n"),
    (ADDED, "class Solution:\n    def add(self, a, b):\n        return a + b\n"),
    (ADDED, "def add(a, b):\n    return a + b\n"),
    (LiveCodeTask(tests=(IoTest("1", "[1, 1]"),), func_name="pair"), "def pair(a):\n    return a, a\n"),
]
WRONG: list[tuple[CodeTask, str, str]] = [
    (DOUBLE, "def double(x):\n    return x + 2\n", "TypeError: can only concatenate"),
    (DOUBLE, "def double(x):\n    return 5\n", "assert 1 failed"),
    (DOUBLE, "def double(x:\n", "the program can't be loaded: SyntaxError"),
    (DOUBLE, "raise SystemExit(0)\n", "the program can't be loaded: SystemExit"),
    (DOUBLE, "import os\nos._exit(0)\n", "the program ended while it was loaded"),
    (LiveCodeTask(tests=(IoTest("1", "1"),), func_name="solve"), "def other(a):\n    return a\n", "KeyError"),
    (DOUBLE, "import os\ndef double(x):\n    os._exit(0)\n", "WireError"),
    (DOUBLE, "def double(x):\n    raise SystemExit(0)\n", "the program raised SystemExit"),
    (
        DOUBLE,
        "class Any:\n    def __eq__(self, other): return True\ndef double(x):\n    return Any()\n",
        "assert 1 failed",
    ),
    (ADDED, "def add(a, b):\n    return 'no' * 90\n", "assert 1 failed: test 1: 'nonono"),
    (MbppTask(tests=("assert True",)), "x = 1\n", "the test does not call the program"),
    (MbppTask(tests=("apply(len, 'a')",)), "def apply(*_): pass\n", "the test checks nothing"),
    (APPLIED, "def apply(function, value):\n    return function(value, 1)\n", "RuntimeError: TypeError"),
    (
        MbppTask(tests=("assert apply(object()) == 1",)),
        "def apply(x): return 1\n",
        "TypeError: a object can't be passed",
    ),
]


@pytest.fixture(autouse=True)
def _recursion_limit() -> Iterator[None]:
    """The judge raises it, in what is elsewhere a process of its own."""
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


def program(way: str, theirs: socket.socket, **given: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM, way, str(theirs.fileno())]
    return subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT, **given)


def conversation(task: CodeTask, source: str) -> dict[str, Any]:
    ours, theirs = socket.socketpair()
    with ours, program("serve_calls", theirs) as process:
        theirs.close()
        verdict = judge(Channel(ours), job_of(task, source))
        ours.shutdown(socket.SHUT_RDWR)
        assert process.wait(30) == 0
    return verdict


@pytest.mark.parametrize("task, source", RIGHT, ids=range(len(RIGHT)))
def test_a_right_program_passes(task: CodeTask, source: str):
    verdict = conversation(task, source)
    assert verdict["reason"] == ""
    assert verdict["passed"]
    assert verdict["checks"] >= 1


@pytest.mark.parametrize("task, source, reason", WRONG, ids=range(len(WRONG)))
def test_a_wrong_program_fails_with_the_reason(task: CodeTask, source: str, reason: str):
    verdict = conversation(task, source)
    assert not verdict["passed"]
    assert reason in verdict["reason"]


@pytest.mark.parametrize(
    "source, printed, status, complaint",
    [
        ("print(int(input()) + 1)", b"42\n", 0, b""),
        ("import sys\nprint('out')\nsys.exit(3)", b"out\n", 3, b""),
        ("import sys\nsys.exit('text')", b"", 1, b""),
        ("1 / 0", b"", 1, b"ZeroDivisionError: division by zero"),
        ("import threading\nthreading.Thread(target=lambda: print('late')).start()", b"late\n", 0, b""),
    ],
)
def test_a_script_ends_as_under_a_bare_interpreter(source: str, printed: bytes, status: int, complaint: bytes):
    ours, theirs = socket.socketpair()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ours, program("run_script", theirs, **pipes) as process:
        theirs.close()
        Channel(ours).send({"source": source, "prelude": ""})
        assert process.communicate(b"41\n", timeout=30) == (printed, complaint)
    assert process.returncode == status

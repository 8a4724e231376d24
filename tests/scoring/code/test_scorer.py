"""Programs are scored right by running them against their tests, in whatever sandbox this machine has."""

from __future__ import annotations

import pytest

from specforge.errors import UsageError
from specforge.scoring.code import CodeScorer, CodeTask, HumanEvalTask, IoTest, LiveCodeTask, MbppTask
from specforge.scoring.code.scorer import NOT_ALLOWED
from specforge.scoring.sandbox import SandboxSettings
from specforge.scoring.score import Answer, Score

SETTINGS = SandboxSettings(allow=True, unsafe=True, wall_s=10, workers=2)


@pytest.fixture(scope="module")
def scorer() -> CodeScorer:
    return CodeScorer(SETTINGS)


def answer(task: CodeTask, output: str) -> Answer:
    return Answer("row", task, (output,))


def score(scorer: CodeScorer, task: CodeTask, output: str) -> Score:
    (only,) = scorer.score_all([answer(task, output)])
    return only


def mbpp(*tests: str, setup: str = "") -> MbppTask:
    return MbppTask(tests, setup)


RIGHT = {
    "several functions": (
        mbpp("assert decode(encode('ab')) == 'ab'", "assert encode('a') == 'b'"),
        "def encode(s): return ''.join(chr(ord(c) + 1) for c in s)\n"
        "def decode(s): return ''.join(chr(ord(c) - 1) for c in s)",
    ),
    "an argument changed in place": (
        mbpp("a = [3, 1]\nf(a)\nassert a == [1, 3]", "d = {1: [2]}\nf2(d)\nassert d == {1: [2, 3], 4: 5}"),
        "def f(a): a.sort()\ndef f2(d):\n    d[1].append(3)\n    d[4] = 5",
    ),
    "the argument itself returned": (
        mbpp("a = [1]\nassert f(a) is a and a == [1, 2]"),
        "def f(a): a.append(2); return a",
    ),
    "the argument unchanged": (mbpp("a = [3, 1]\nassert f(a) == [1, 3] and a == [3, 1]"), "def f(a): return sorted(a)"),
    "a generator": (mbpp("assert list(f(3)) == [0, 1, 2]"), "def f(n): yield from range(n)"),
    "an iterator stepped through": (
        mbpp("i = f()\nassert next(i) == 1 and next(i) == 2 and next(i, None) is None"),
        "def f(): return iter([1, 2])",
    ),
    "a map object": (mbpp("assert sorted(f([2, 1])) == ['1', '2']"), "def f(a): return map(str, a)"),
    "a function returned": (mbpp("assert f(2)(3) == 5"), "def f(a): return lambda b: a + b"),
    "a function as argument": (
        mbpp("assert f(lambda x: x * 2, [1, 2]) == [2, 4]"),
        "def f(g, a): return [g(x) for x in a]",
    ),
    "a built-in function as argument": (mbpp("assert f(len, ['ab']) == [2]"), "def f(g, a): return [g(x) for x in a]"),
    "a type as argument": (
        mbpp("assert f((1, 'a'), int) == ['a']"),
        "def f(t, k): return [x for x in t if not isinstance(x, k)]",
    ),
    "an exception expected": (
        mbpp(
            "try:\n    f(-1)\n    raise SystemError\nexcept ValueError as error:\n    assert 'negative' in str(error)"
        ),
        "class Negative(ValueError): pass\ndef f(n):\n    if n < 0: raise Negative('negative')",
    ),
    "a class of the program's": (
        mbpp(
            "assert f([Pair(1, 2), Pair(3, 5)]) == 2",
            "assert Pair(1, 2).size() == 1",
            "assert Pair(1, 2) == Pair(1, 2)",
        ),
        "class Pair:\n    def __init__(self, a, b): self.a, self.b = a, b\n    def size(self): return self.b - self.a\n"
        "    def __eq__(self, o): return (self.a, self.b) == (o.a, o.b)\ndef f(ps): return max(p.size() for p in ps)",
    ),
    "a tree built by the set-up": (
        mbpp("assert depth(root) == 2", setup="root = Node(1)\r\nroot.left = Node(2)"),
        "class Node:\n    def __init__(self, v): self.v, self.left, self.right = v, None, None\n"
        "def depth(n): return 0 if n is None else 1 + max(depth(n.left), depth(n.right))",
    ),
    "a class of the set-up": (
        mbpp("assert f(P(2)) == 2", setup="class P:\n    def __init__(self, x): self.x = x"),
        "def f(p): return p.x",
    ),
    "an import of the set-up": (
        mbpp("assert math.isclose(f(2), 1.41421356, rel_tol=1e-6)", setup="import math"),
        "def f(n): return math.sqrt(n)",
    ),
    "a module that the test names": (
        mbpp("assert f(2) == sys.getsizeof(2)"),
        "import sys\ndef f(x): return sys.getsizeof(x)",
    ),
    "a built-in name asked for": (mbpp("assert sum(1, 2) == 3"), "def sum(a, b): return a + b"),
    "a constant of the program's": (mbpp("assert f(1) == LIMIT"), "LIMIT = 5\ndef f(x): return 5"),
    "keyword arguments": (mbpp("assert f(1, b=2) == 3"), "def f(a, b): return a + b"),
    "a tuple that is a list elsewhere": (mbpp("assert f() == (1, [2])"), "def f(): return (1, [2])"),
    "a counter": (
        mbpp("assert f('aab') == {'a': 2, 'b': 1}"),
        "from collections import Counter\ndef f(s): return Counter(s)",
    ),
    "a large number": (mbpp("assert f() == 3 ** 5000"), "def f(): return 3 ** 5000"),
    "keys of a dict": (mbpp("assert f({1: 2}) == {1}"), "def f(d): return d.keys()"),
    "printing": (mbpp("assert f() == 1"), "def f():\n    print('x' * 100000)\n    return 1"),
    "its own standard input": (mbpp("assert f() == ''"), "import sys\ndef f(): return sys.stdin.read()"),
    "a main block that would fail": (
        mbpp("assert f() == 1"),
        "def f(): return 1\nif __name__ == '__main__':\n    f(input())",
    ),
    "dataclasses": (
        mbpp("assert f(1) == 1"),
        "from __future__ import annotations\nfrom dataclasses import dataclass, asdict\n"
        "@dataclass\nclass A:\n    x: int\n"
        "def f(x): return asdict(A(x))['x']",
    ),
    "threads": (
        mbpp("assert f() == 4"),
        "from concurrent.futures import ThreadPoolExecutor\ndef f():\n    with ThreadPoolExecutor(4) as p:\n"
        "        return sum(p.map(lambda x: 1, range(4)))",
    ),
    "a process pool": (
        mbpp("assert f() == b'hi'"),
        "import subprocess, sys\ndef f():\n    command = [sys.executable, '-S', '-c', 'print(\"hi\", end=\"\")']\n"
        "    return subprocess.run(command, capture_output=True).stdout",
    ),
    "a temporary file": (
        mbpp("assert f() == 'x'"),
        "import tempfile\ndef f():\n    with tempfile.TemporaryFile('w+') as t:\n"
        "        t.write('x'); t.seek(0); return t.read()",
    ),
    "asyncio": (mbpp("assert f() == 1"), "import asyncio\nasync def g(): return 1\ndef f(): return asyncio.run(g())"),
    "a test that uses the prompt's helper": (
        HumanEvalTask(
            "def double(x):\n    return 2 * x\n\ndef undo(x):\n    '''Undo double.'''\n",
            "def check(candidate):\n    for x in range(5):\n        assert candidate(double(x)) == x\n",
            "undo",
        ),
        "    return x // 2\n",
    ),
    "a script": (
        LiveCodeTask((IoTest("3 4\n", "7\n"), IoTest("1 1", "2"))),
        "a, b = map(int, input().split())\nprint(a + b)",
    ),
    "a script that ends itself": (
        LiveCodeTask((IoTest("1", "1"),)),
        "import sys\nprint(sys.stdin.read())\nsys.exit(0)",
    ),
    "a script with a main block": (
        LiveCodeTask((IoTest("1", "1"),)),
        "def main(): print(input())\nif __name__ == '__main__': main()",
    ),
    "a script that reads bytes": (
        LiveCodeTask((IoTest("1 2", "3"),)),
        "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
    ),
    "a script that reads file descriptor 0": (
        LiveCodeTask((IoTest("1 2", "3"),)),
        "import os\nprint(sum(map(int, os.read(0, 99).split())))",
    ),
    "a script in a thread with a deep stack": (
        LiveCodeTask((IoTest("30000", "30000"),)),
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 27)\n"
        "def depth(n): return 0 if n == 0 else 1 + depth(n - 1)\n"
        "def main(): print(depth(int(input())))\nthreading.Thread(target=main).start()",
    ),
    "a script with much input and output": (
        LiveCodeTask((IoTest("\n".join(map(str, range(200_000))), "\n".join(map(str, range(200_000)))),)),
        "import sys\nfor line in sys.stdin: sys.stdout.write(line)",
    ),
    "starter code without its imports": (
        LiveCodeTask((IoTest("[1, 2]\n1", "3"), IoTest("[]\n0", "0")), "add"),
        "class Solution:\n    def add(self, xs: List[int], y: Optional[int]) -> int:\n        return sum(xs)",
    ),
    "a function that returns a tuple": (LiveCodeTask((IoTest("1", "[1, 2]"),), "f"), "def f(x): return (x, 2)"),
    "a method with state": (
        LiveCodeTask((IoTest('"a"', "1"), IoTest('"b"', "2")), "f"),
        "class Solution:\n    seen = 0\n    def f(self, s):\n        self.seen += 1\n        return self.seen",
    ),
}
"""By what it shows: a task and a program that solves it."""

WRONG = {
    "a generator where a list is wanted": (mbpp("assert f(3) == [0, 1, 2]"), "def f(n): yield from range(n)"),
    "a built-in name redefined": (mbpp("assert set(f(1)) == set([2])"), "def set(x): return 0\ndef f(x): return []"),
    "a module redefined": (
        mbpp("assert math.isclose(f(2), 1.414, rel_tol=0.001)", setup="import math"),
        "class math:\n    isclose = staticmethod(lambda *a, **k: True)\ndef f(n): return 0",
    ),
    "a module faked where the test has none": (
        mbpp("assert math.isclose(f(2), 1.414, rel_tol=0.001)"),
        "class math:\n    isclose = staticmethod(lambda *a, **k: True)\ndef f(n): return 0",
    ),
    "a helper of the prompt redefined": (
        HumanEvalTask(
            "def poly(x):\n    return x * x - 4\n\ndef root():\n    '''A root of poly.'''\n",
            "def check(candidate):\n    assert abs(poly(candidate())) < 1e-6\n",
            "root",
        ),
        "```python\ndef poly(x): return 0\ndef root(): return 7\n```",
    ),
    "a difference that is always small": (
        mbpp("assert abs(f(1) - 2) < 0.01"),
        "class N:\n    __sub__ = __abs__ = lambda s, *a: s\n    __lt__ = lambda s, o: True\ndef f(x): return N()",
    ),
    "everything contained": (
        mbpp("assert 7 in f(1)"),
        "class All:\n    __contains__ = lambda s, x: True\n    __iter__ = lambda s: iter(())\ndef f(x): return All()",
    ),
    "no function of the name": (mbpp("assert f(1) == 1"), "def g(x): return 1"),
    "a syntax error": (mbpp("assert f(1) == 1"), "```python\ndef f(x:\n    return 1\n```"),
    "one test of three": (mbpp("assert f(1) == 1", "assert f(2) == 1", "assert f(3) == 3"), "def f(x): return x"),
    "an exit in a test that excepts everything": (
        mbpp("try:\n    f()\nexcept:\n    pass\nassert True"),
        "def f():\n    import os\n    os._exit(0)",
    ),
    "an empty test": (
        HumanEvalTask("def f():\n    '''F.'''\n", "def check(candidate):\n    pass\n", "f"),
        "    return 1\n",
    ),
    "a test that never calls": (
        HumanEvalTask("def f():\n    '''F.'''\n", "def check(candidate):\n    assert True\n", "f"),
        "    return 1\n",
    ),
    "no tests": (mbpp(), "def f(): return 1"),
    "a script without tests": (LiveCodeTask(()), "print(1)"),
    "a function without tests": (LiveCodeTask((), "f"), "def f(): return 1"),
    "tests that expect no output": (LiveCodeTask((IoTest("1", ""),)), "import sys\nsys.exit(0)"),
    "another output": (LiveCodeTask((IoTest("1", "1"), IoTest("2", "2"))), "print(1)"),
    "an exception after the right output": (LiveCodeTask((IoTest("1", "1"),)), "print(input())\nraise ValueError"),
    "a status other than 0": (
        LiveCodeTask((IoTest("1", "1"),)),
        "print(input())\nimport os, sys\nsys.stdout.flush()\nos._exit(3)",
    ),
    "another result": (LiveCodeTask((IoTest("1", "2"),), "f"), "def f(x): return x"),
    "an object as result": (
        LiveCodeTask((IoTest("1", "2"),), "f"),
        "class Yes:\n    def __eq__(self, o): return True\ndef f(x): return Yes()",
    ),
}
"""By what it shows: a task and a program that does not solve it, or a task that nothing solves."""


def test_programs_that_solve_their_tasks_are_right(scorer: CodeScorer) -> None:
    scores = scorer.score_all([answer(task, output) for task, output in RIGHT.values()])

    wrong = {name: found.reason for name, found in zip(RIGHT, scores, strict=True) if not found.correct}
    assert wrong == {}


def test_programs_that_do_not_are_wrong(scorer: CodeScorer) -> None:
    scores = scorer.score_all([answer(task, output) for task, output in WRONG.values()])

    right = [name for name, found in zip(WRONG, scores, strict=True) if found.correct is not False]
    assert right == []


def test_the_reason_of_a_wrong_answer_says_what_happened(scorer: CodeScorer) -> None:
    task = mbpp("assert f(1) == 1", "assert f(2) == 2")
    outputs = ["def f(x): return 1", "def f(x): return x / 0", "def g(): pass", "import sys; sys.exit()", "f = = 1"]

    reasons = [found.reason for found in scorer.score_all([answer(task, output) for output in outputs])]

    assert reasons[0] == "assert 2 failed"
    assert reasons[1] == "ZeroDivisionError: division by zero"
    assert reasons[2] == "NameError: name 'f' is not defined"
    assert reasons[3].startswith("the program can't be loaded: SystemExit")
    assert reasons[4].startswith("the program can't be loaded: SyntaxError")


def test_an_answer_that_failed_or_is_empty_is_wrong_and_not_run(scorer: CodeScorer) -> None:
    task = mbpp("assert f() == 1")
    failed = Answer("a", task, ("def f(): return 1",), failed=True)
    empty = Answer("b", task, ("",))
    none = Answer("c", task, ())

    scores = scorer.score_all([failed, empty, none])

    assert [found.correct for found in scores] == [False, False, False]
    assert [found.answer for found in scores] == [None, None, None]


def test_scores_come_in_the_order_of_the_answers(scorer: CodeScorer) -> None:
    answers = [answer(mbpp(f"assert f() == {number % 3}"), "def f(): return 0") for number in range(20)]

    assert [found.correct for found in scorer.score_all(answers)] == [number % 3 == 0 for number in range(20)]


def test_a_right_answer_says_what_was_run(scorer: CodeScorer) -> None:
    found = score(scorer, mbpp("assert f() == 1"), "Here:\n```python\ndef f(): return 1\n```")

    assert found.answer == "def f(): return 1"
    assert found.reason == "checks held: 1"
    assert found.details is not None
    assert found.details["checks"] == 1


def test_without_permission_nothing_runs() -> None:
    found = score(CodeScorer(SandboxSettings(allow=False)), mbpp("assert f() == 1"), "def f(): return 1")

    assert found == Score(correct=None, answer=None, reason=NOT_ALLOWED)


def test_a_kind_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(UsageError, match="--code-sandbox podman: can't be used here"):
        CodeScorer(SandboxSettings(kind="podman", allow=True)).score_all([answer(mbpp("assert f()"), "def f(): pass")])


@pytest.mark.parametrize(
    "wrong, flag",
    [({"kind": "jail"}, "--code-sandbox"), ({"wall_s": 0}, "--code-timeout"), ({"workers": 0}, "--code-workers")],
)
def test_a_setting_that_makes_no_sense_is_named(wrong: dict[str, object], flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        SandboxSettings(**wrong)  # type: ignore[arg-type]

"""Small Python functions, asked in three ways: as a stub to complete, in words, and as a contest problem."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tools.pair.example import Example
from tools.pair.families.functions import task


def _call(name: str, arguments: tuple[Any, ...]) -> str:
    return f"{name}({', '.join(_literal(a) for a in arguments)})"


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def stub(random: Random) -> Example:
    made = task(random)
    shown, value = made.cases[0]
    docstring = f'    """{made.does}\n    >>> {_call(made.name, shown)}\n    {value!r}\n    """\n'
    checks = "".join(f"    assert {_call('candidate', args)} == {_literal(want)}\n" for args, want in made.cases)
    row = {
        "task_id": "",
        "prompt": f"{made.signature}\n{docstring}",
        "canonical_solution": "".join(f"    {line}\n" for line in made.body),
        "test": f"def check(candidate):\n{checks}",
        "entry_point": made.name,
    }
    return Example("humaneval", row, (made.program,))


def in_words(random: Random) -> Example:
    made = task(random)
    does = made.does[0].lower() + made.does[1:-1]
    question = f"Write a function {made.name}({', '.join(made.arguments)}) to {does}."
    row = {
        "source_file": "",
        "task_id": 0,
        "prompt": question,
        "code": made.program,
        "test_imports": [],
        "test_list": [f"assert {_call(made.name, args)} == {_literal(want)}" for args, want in made.cases],
    }
    return Example("mbpp", row, (made.program,))


STDIN = (
    ("two integers on one line", "their sum", "a, b = map(int, input().split())", "a + b", lambda a, b: a + b, 2),
    ("two integers on one line", "their product", "a, b = map(int, input().split())", "a * b", lambda a, b: a * b, 2),
    ("two integers on one line", "the larger one", "a, b = map(int, input().split())", "max(a, b)", max, 2),
    ("two integers on one line", "the smaller one", "a, b = map(int, input().split())", "min(a, b)", min, 2),
    ("an integer", "its square", "n = int(input())", "n * n", lambda n: n * n, 1),
    ("an integer", "twice its value", "n = int(input())", "n * 2", lambda n: n * 2, 1),
    ("an integer", "the remainder when it is divided by {c}", "n = int(input())", "n % {c}", None, 1),
    ("an integer", "the integer plus {c}", "n = int(input())", "n + {c}", None, 1),
    ("an integer", "the integer times {c}", "n = int(input())", "n * {c}", None, 1),
    (
        "a list of integers on one line",
        "their sum",
        "xs = list(map(int, input().split()))",
        "sum(xs)",
        lambda *v: sum(v),
        4,
    ),
    ("a list of integers on one line", "the largest one", "xs = list(map(int, input().split()))", "max(xs)", max, 4),
    ("a list of integers on one line", "the smallest one", "xs = list(map(int, input().split()))", "min(xs)", min, 4),
    (
        "a list of integers on one line",
        "how many there are",
        "xs = list(map(int, input().split()))",
        "len(xs)",
        lambda *v: len(v),
        4,
    ),
)
ASKS = ("Read {given}. Print {wanted}.", "You are given {given}. Print {wanted}.", "Given {given}, print {wanted}.")


def _constant(expression: str, c: int) -> Callable[..., int]:
    operation = expression[2]
    return {"%": lambda n: n % c, "+": lambda n: n + c, "*": lambda n: n * c}[operation]


def contest(random: Random) -> Example:
    if random.random() < 0.5:
        return _functional(random)
    given, wanted, read, expression, twin, arity = random.choice(STDIN)
    c = random.randint(2, 9)
    twin = twin or _constant(expression, c)
    wanted, expression = wanted.format(c=c), expression.format(c=c)
    content = random.choice(ASKS).format(given=given, wanted=wanted)
    tests = []
    for _ in range(3):
        values = [random.randint(1, 30) for _ in range(arity)]
        tests.append({"input": " ".join(map(str, values)) + "\n", "output": f"{twin(*values)}\n", "testtype": "stdin"})
    return _contest_row(content, "", tests, {}, f"{read}\nprint({expression})")


def _functional(random: Random) -> Example:
    made = task(random)
    starter = f"class Solution:\n    def {made.name}(self, {', '.join(made.arguments)}):\n        "
    program = "\n".join([*starter.split("\n")[:2], *(f"        {line}" for line in made.body)])
    tests = [
        {"input": "\n".join(json.dumps(a) for a in args), "output": json.dumps(want), "testtype": "functional"}
        for args, want in made.cases
    ]
    return _contest_row(made.does, starter, tests, {"func_name": made.name}, program)


def _contest_row(
    content: str, starter: str, tests: list[dict[str, str]], metadata: dict[str, str], program: str
) -> Example:
    row = {
        "question_title": "",
        "question_content": content,
        "platform": "leetcode" if starter else "atcoder",
        "question_id": "",
        "contest_id": "",
        "contest_date": "2025-01-01T00:00:00",
        "starter_code": starter,
        "difficulty": "easy",
        "public_test_cases": json.dumps(tests[:1]),
        "private_test_cases": json.dumps(tests[1:]),
        "metadata": json.dumps(metadata),
    }
    return Example("livecodebench", row, (program,))

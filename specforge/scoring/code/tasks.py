"""What a program is checked against: the ``reference`` of a prompt of the code datasets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HumanEvalTask:
    """A function to complete, as HumanEval has it.

    Attributes:
        prompt: imports, helpers, and the function's head with its docstring.
        test: source that defines ``check(candidate)``.
        entry_point: the function's name.
    """

    prompt: str
    test: str
    entry_point: str


@dataclass(frozen=True, slots=True)
class MbppTask:
    """Asserts that a program must pass, as MBPP has them.

    Attributes:
        tests: the asserts (``test_list``, and the challenge tests where these are wanted), each a source text.
        setup: source that runs before them: the ``test_imports``, a line each, and ``test_setup_code``.
    """

    tests: tuple[str, ...]
    setup: str = ""


@dataclass(frozen=True, slots=True)
class IoTest:
    """One test of LiveCodeBench: what goes in and what must come out.

    Attributes:
        input: the standard input; for a function, its arguments, one JSON value a line.
        output: the standard output; for a function, the JSON value that it must return.
    """

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class LiveCodeTask:
    """A program or a function with its tests, as LiveCodeBench has them.

    Attributes:
        tests: the public and then the private tests.
        func_name: the function (or method of ``Solution``) to call; None for a program that reads its standard input.
    """

    tests: tuple[IoTest, ...]
    func_name: str | None = None


CodeTask = HumanEvalTask | MbppTask | LiveCodeTask

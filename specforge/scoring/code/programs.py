"""What is run for an answer: its program, and the job that a sandbox is given for it. Pure functions."""

from __future__ import annotations

import ast
import builtins
import sys
from typing import Any

from specforge.scoring.code.extract import extract_code
from specforge.scoring.code.tasks import CodeTask, HumanEvalTask, LiveCodeTask, MbppTask

_STARRED = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "json", "builtins", "typing"),
)
_NAMED = [*_STARRED[:-2], "sys"]
_RECURSION = "sys.setrecursionlimit(50000)"

PRELUDE = "\n".join(
    [*(f"from {name} import *" for name in _STARRED), *(f"import {name}" for name in _NAMED), _RECURSION]
)
"""What LiveCodeBench's checker imports before a program: starter code uses ``List`` and the like without an import."""


def _loaded_names(source: str) -> tuple[list[str], set[str], set[str]]:
    """The names that a source reads, in order; those that it defines; and those of which it reads attributes only."""
    read: list[str] = []
    defined: set[str] = set()
    bases: set[str] = set()
    elsewhere: set[str] = set()
    tree = ast.parse(source)
    attribute_values = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                read.append(node.id)
                (bases if id(node) in attribute_values else elsewhere).add(node.id)
            else:
                defined.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            defined.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
    return read, defined, bases - elsewhere


def names_under_test(task: MbppTask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the asserts of a task want from the program, and which modules of the standard library they use.

    A name that is neither built in nor defined by the set-up is the program's. Built-in names stay the built-in ones,
    so that a program can't say what ``set`` or ``abs`` mean in the test, unless the asserts name nothing else: one of
    MBPP's tasks asks for a function ``sum``.
    """
    read, defined, bases = _loaded_names("\n".join([task.setup, *task.tests]))
    modules = {name for name in bases - defined if name in sys.stdlib_module_names}
    wanted = dict.fromkeys(name for name in read if name not in defined and name not in modules)
    foreign = [name for name in wanted if not hasattr(builtins, name)]
    if foreign:
        return tuple(foreign), tuple(sorted(modules))
    called = [
        {
            node.func.id
            for node in ast.walk(ast.parse(test))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        for test in task.tests
    ]
    everywhere = set.intersection(*called) if called else set()
    return tuple(name for name in wanted if name in everywhere), tuple(sorted(modules))


def program_of(task: CodeTask, output: str) -> str | None:
    """The code in a model's output, to run after the task's prompt or set-up; None where there is none."""
    if isinstance(task, HumanEvalTask):
        return extract_code(output, names=(task.entry_point,), prompt=task.prompt)
    if isinstance(task, MbppTask):
        return extract_code(output, names=names_under_test(task)[0])
    return extract_code(output, names=("Solution", task.func_name) if task.func_name else ())


def job_of(task: CodeTask, program: str) -> dict[str, Any]:
    """The job that a sandbox is given: the program, and what its judge checks it with."""
    if isinstance(task, HumanEvalTask):
        return {
            "way": "function",
            "source": program,
            "prelude": _complete_module(task.prompt),
            "test": task.test,
            "entry_point": task.entry_point,
        }
    if isinstance(task, MbppTask):
        names, modules = names_under_test(task)
        setup = task.setup.replace("\r\n", "\n")
        return {
            "way": "asserts",
            "source": program,
            "setup": setup,
            "names": names,
            "modules": modules,
            "tests": [test.replace("\r\n", "\n") for test in task.tests],
        }
    return _live_job(task, program)


def _complete_module(prompt: str) -> str:
    """A prompt as a module by itself: one whose last function has no docstring needs a body."""
    try:
        ast.parse(prompt)
    except SyntaxError:
        return prompt.rstrip() + "\n    pass\n"
    return prompt


def _live_job(task: LiveCodeTask, program: str) -> dict[str, Any]:
    tests = [{"input": test.input, "output": test.output} for test in task.tests]
    common = {"source": program, "prelude": PRELUDE, "tests": tests}
    if task.func_name is None:
        return {"way": "script", **common}
    return {"way": "calls", "func_name": task.func_name, **common}

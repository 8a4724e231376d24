"""Reference solutions score full marks, solutions of other rows nearly none. Needs the rows in ../shared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specforge.scoring.code import CodeScorer, HumanEvalTask, MbppTask
from specforge.scoring.sandbox import SandboxSettings
from specforge.scoring.score import Answer

SHARED = Path(__file__).resolve().parents[4] / "shared"


def rows(*parts: str) -> list[dict[str, Any]]:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {'/'.join(parts)} in ../shared")
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def scorer() -> CodeScorer:
    return CodeScorer(SandboxSettings(allow=True, unsafe=True, wall_s=60))


def humaneval(row: dict[str, Any]) -> HumanEvalTask:
    return HumanEvalTask(row["prompt"], row["test"], row["entry_point"])


def mbpp(row: dict[str, Any]) -> MbppTask:
    setup = "\n".join([*row.get("test_imports", []), row.get("test_setup_code", "")])
    return MbppTask((*row["test_list"], *row.get("challenge_test_list", [])), setup)


def wrong_ones(scorer: CodeScorer, answers: list[Answer]) -> dict[str, str]:
    scores = scorer.score_all(answers)
    return {found.row_id: score.reason for found, score in zip(answers, scores, strict=True) if not score.correct}


FORMS: dict[str, Callable[[dict[str, Any]], str]] = {
    "body only": lambda row: row["canonical_solution"],
    "body, stripped": lambda row: row["canonical_solution"].strip(),
    "whole": lambda row: row["prompt"] + row["canonical_solution"],
    "fenced, with prose": lambda row: (
        f"Here is the solution:\n\n```python\n{row['prompt']}{row['canonical_solution']}```\n\nIt passes the examples."
    ),
    "prose without a fence": lambda row: (
        f"Here is the solution:\n\n{row['prompt']}{row['canonical_solution']}\nIt passes the examples."
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_humaneval_references_are_right(scorer: CodeScorer, form: str) -> None:
    answers = [
        Answer(row["task_id"], humaneval(row), (FORMS[form](row),)) for row in rows("data", "humaneval", "test.jsonl")
    ]

    assert len(answers) == 164
    assert wrong_ones(scorer, answers) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name, count", [("sanitized-test.jsonl", 257), ("full.jsonl", 974)])
def test_mbpp_references_are_right(scorer: CodeScorer, name: str, count: int) -> None:
    answers = [Answer(str(row["task_id"]), mbpp(row), (row["code"],)) for row in rows("data", "mbpp", name)]

    assert len(answers) == count
    assert wrong_ones(scorer, answers) == {}


@pytest.mark.slow
def test_solutions_of_other_rows_are_wrong(scorer: CodeScorer) -> None:
    functions = rows("data", "humaneval", "test.jsonl")
    asserts = rows("data", "mbpp", "sanitized-test.jsonl")
    answers = [
        Answer(f"{row['task_id']} {form}", humaneval(row), (FORMS[form](other),))
        for form in ("body only", "whole")
        for row, other in zip(functions, functions[1:] + functions[:1], strict=True)
    ]
    answers += [
        Answer(str(row["task_id"]), mbpp(row), (other["code"],))
        for row, other in zip(asserts, asserts[1:] + asserts[:1], strict=True)
    ]

    right = len(answers) - len(wrong_ones(scorer, answers))
    assert right < 0.02 * len(answers)


def test_the_shared_code_cases_come_out_right(scorer: CodeScorer) -> None:
    cases = [case for case in rows("cases", "scoring.jsonl") if case["kind"] == "code"]
    answers = [Answer(case["note"], humaneval(case), (case["output"],)) for case in cases]

    scores = scorer.score_all(answers)

    assert {case["note"]: score.correct for case, score in zip(cases, scores, strict=True)} == {
        case["note"]: case["correct"] for case in cases
    }

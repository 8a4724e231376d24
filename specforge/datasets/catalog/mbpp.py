"""MBPP (Austin et al. 2021): short Python tasks with asserts; the sanitized rows unless the full ones are asked for."""

from __future__ import annotations

from typing import Any

import orjson

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, first_column
from specforge.errors import DatasetError
from specforge.scoring.code.tasks import MbppTask

# The publication's own prompt; the last sentence is ours, since chat models wrap code in prose.
OPENING = "You are an expert Python programmer, and here is your task: {task} Your code should pass these tests:"
CLOSING = "Reply with one fenced Python code block that holds the whole program."


def listed(row: Row, column: str) -> tuple[str, ...]:
    """A column of texts, which a CSV file holds as JSON; empty where the row has none."""
    found: Any = row.get(column) or ()
    if isinstance(found, str):
        try:
            found = orjson.loads(found)
        except orjson.JSONDecodeError:
            raise DatasetError(f"{column} is {found!r}; expected a list of texts") from None
    return tuple(map(str, found))


def question(row: Row) -> Question:
    """The task with its tests shown, since they alone say the function's name."""
    tests = listed(row, "test_list")
    if not tests:
        raise DatasetError("test_list is empty; expected asserts")
    task = str(first_column(row, "prompt", "text")).strip()
    setup = "\n".join((*listed(row, "test_imports"), str(row.get("test_setup_code") or "")))
    return Question(
        "\n\n".join((OPENING.format(task=task), "\n".join(tests), CLOSING)),
        reference=MbppTask(tests, setup.strip()),
    )


DATASET = DatasetDefinition(
    name="mbpp",
    parts=(
        HubPart("google-research-datasets/mbpp", "test", config="sanitized", label="sanitized"),
        HubPart("google-research-datasets/mbpp", "test", config="full", label="full"),
    ),
    question=question,
    row_id=lambda row: str(row["task_id"]),
    columns=("task_id", "prompt|text", "test_list"),
    scorer="code",
    max_new_tokens=8192,
    axes=(
        SubsetAxis(
            "configuration",
            lambda row: str(row.get("configuration") or ""),
            ("sanitized", "full"),
            default=("sanitized",),
            labelled=True,
        ),
    ),
)

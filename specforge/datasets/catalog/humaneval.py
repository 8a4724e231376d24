"""HumanEval (Chen et al. 2021): a function to complete from its docstring, checked by tests."""

from __future__ import annotations

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row
from specforge.scoring.code.tasks import HumanEvalTask

INSTRUCTION = (
    "Please provide a self-contained Python script that solves the following problem in a markdown code block:"
)
"""EvalPlus's instruction for chat models."""


def question(row: Row) -> Question:
    """The function's head in a fenced block."""
    return Question(
        f"{INSTRUCTION}\n```python\n{str(row['prompt']).strip()}\n```",
        reference=HumanEvalTask(str(row["prompt"]), str(row["test"]), str(row["entry_point"])),
    )


DATASET = DatasetDefinition(
    name="humaneval",
    parts=(HubPart("openai/openai_humaneval", "test"),),
    question=question,
    row_id=lambda row: str(row["task_id"]),
    columns=("task_id", "prompt", "test", "entry_point"),
    scorer="code",
    max_new_tokens=8192,
    aliases=("human-eval",),
)

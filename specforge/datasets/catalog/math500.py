"""MATH-500 (Lightman et al. 2023): 500 problems of MATH's test set."""

from __future__ import annotations

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, text_id
from specforge.datasets.prompts import boxed

SUBJECTS = (
    "Algebra",
    "Counting & Probability",
    "Geometry",
    "Intermediate Algebra",
    "Number Theory",
    "Prealgebra",
    "Precalculus",
)


def question(row: Row) -> Question:
    """The problem, asked for a boxed answer; results are reported by subject."""
    return Question(boxed(row["problem"]), reference=str(row["answer"]), category=str(row.get("subject") or ""))


def level(row: Row) -> str:
    """``3``; MATH's own files write ``Level 3``."""
    return str(row.get("level") or "").removeprefix("Level ")


DATASET = DatasetDefinition(
    name="math500",
    parts=(HubPart("HuggingFaceH4/MATH-500", "test"),),
    question=question,
    row_id=lambda row: str(row.get("unique_id") or text_id(row["problem"])),
    columns=("problem", "answer"),
    scorer="math",
    max_new_tokens=16384,
    axes=(
        SubsetAxis("subject", lambda row: str(row.get("subject") or ""), SUBJECTS),
        SubsetAxis("level", level, ("1", "2", "3", "4", "5")),
    ),
    aliases=("math", "math-500"),
)

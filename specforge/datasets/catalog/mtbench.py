"""MT-Bench (Zheng et al. 2023): eighty conversations of two turns, graded by a judge model."""

from __future__ import annotations

from specforge.datasets.definition import (
    DatasetDefinition,
    HubPart,
    Question,
    Row,
    SubsetAxis,
    first_column,
    text_id,
)
from specforge.errors import DatasetError

CATEGORIES = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")


def turns(row: Row) -> tuple[str, ...]:
    """The user's turns; the Hub calls them ``prompt``, FastChat's question file ``turns``."""
    found = first_column(row, "prompt", "turns")
    if isinstance(found, str) or not found:
        raise DatasetError(f"the turns are {found!r}; expected a list of texts")
    return tuple(map(str, found))


def question(row: Row) -> Question:
    """The turns as they stand; the reference is the judge's model answers by turn, where the row has some."""
    first, *later = turns(row)
    references = tuple(map(str, row.get("reference") or ()))
    return Question(first, reference=references or None, followups=tuple(later), category=str(row["category"]))


def row_id(row: Row) -> str:
    """The question's number, 81 to 160 in the published ones."""
    number = next((row[name] for name in ("prompt_id", "question_id") if row.get(name) is not None), None)
    return text_id(*turns(row)) if number is None else str(number)


DATASET = DatasetDefinition(
    name="mtbench",
    parts=(HubPart("HuggingFaceH4/mt_bench_prompts", "train"),),
    question=question,
    row_id=row_id,
    columns=("prompt|turns", "category"),
    scorer="conversation",
    max_new_tokens=4096,
    axes=(SubsetAxis("category", lambda row: str(row["category"]), CATEGORIES),),
    aliases=("mt-bench",),
)

"""GPQA (Rein et al. 2023): graduate-level multiple choice; gated on the Hub."""

from __future__ import annotations

import hashlib

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, text_id
from specforge.datasets.prompts import LETTERS, choice_prompt
from specforge.scoring.choice import ChoiceReference

CONFIGURATIONS = ("diamond", "main", "extended")
_INCORRECT = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def row_id(row: Row) -> str:
    """GPQA's record id, which is the same in its three configurations."""
    return str(row.get("Record ID") or text_id(str(row["Question"])))


def shuffled(row: Row) -> list[str]:
    """The options in an order that depends on the row alone: by the SHA-256 of its id and the option's column."""
    columns = sorted(
        ("Correct Answer", *_INCORRECT),
        key=lambda column: hashlib.sha256(f"{row_id(row)}:{column}".encode()).digest(),
    )
    return [str(row[column]).strip() for column in columns]


def question(row: Row) -> Question:
    """Zero-shot chain of thought; results are reported by domain."""
    options = shuffled(row)
    letter = LETTERS[options.index(str(row["Correct Answer"]).strip())]
    return Question(
        choice_prompt(str(row["Question"]), options),
        reference=ChoiceReference(letter, tuple(options)),
        category=str(row.get("High-level domain") or ""),
    )


DATASET = DatasetDefinition(
    name="gpqa",
    parts=tuple(
        HubPart("Idavidrein/gpqa", "train", config=f"gpqa_{configuration}", label=configuration)
        for configuration in CONFIGURATIONS
    ),
    question=question,
    row_id=row_id,
    columns=("Question", "Correct Answer", *_INCORRECT),
    scorer="choice",
    max_new_tokens=32768,
    axes=(
        SubsetAxis(
            "configuration",
            lambda row: str(row.get("configuration") or ""),
            CONFIGURATIONS,
            default=("diamond",),
            labelled=True,
        ),
    ),
    aliases=("gpqa-diamond",),
)

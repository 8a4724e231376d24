"""MMStar (Chen et al. 2024): multiple choice about an image; the options stand in the question's text."""

from __future__ import annotations

import re

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, text_id
from specforge.datasets.prompts import CHOICE_INSTRUCTION, LETTERS, image_part, letter_of
from specforge.scoring.choice import ChoiceReference

CATEGORIES = (
    "coarse perception",
    "fine-grained perception",
    "instance reasoning",
    "logical reasoning",
    "math",
    "science & technology",
)


def options(text: str) -> tuple[str, ...]:
    """The options behind ``Options:``; four where they can't be told apart, which a few questions need."""
    _, _, listed = text.rpartition("Options:")
    marks = list(re.finditer(r"(?:^|[\s,])\(?([A-H])[:.)]\s", listed))
    if [mark[1] for mark in marks] != list(LETTERS[: len(marks)]) or len(marks) < 2:
        return ("",) * 4
    ends = [mark.start() for mark in marks[1:]] + [len(listed)]
    return tuple(listed[mark.end() : end].strip().rstrip(",").strip() for mark, end in zip(marks, ends, strict=True))


def question(row: Row) -> Question:
    """The image before the text, as vision models are trained; results are reported by category."""
    text = str(row["question"]).strip()
    found = options(text)
    instruction = CHOICE_INSTRUCTION.format(letters=LETTERS[: len(found)])
    return Question(
        (image_part(row["image"]), {"type": "text", "text": f"{instruction}\n\n{text}"}),
        reference=ChoiceReference(letter_of(row["answer"], len(found)), found),
        category=str(row.get("category") or ""),
    )


def row_id(row: Row) -> str:
    """The published index."""
    return text_id(str(row["question"])) if row.get("index") is None else str(row["index"])


DATASET = DatasetDefinition(
    name="mmstar",
    parts=(HubPart("Lin-Chen/MMStar", "val"),),
    question=question,
    row_id=row_id,
    columns=("question", "image", "answer"),
    scorer="choice",
    max_new_tokens=4096,
    axes=(
        SubsetAxis("category", lambda row: str(row.get("category") or ""), CATEGORIES),
        SubsetAxis("l2 category", lambda row: str(row.get("l2_category") or "")),
    ),
    images=True,
)

"""GSM8K (Cobbe et al. 2021): word problems whose answer is a number after ``####``."""

from __future__ import annotations

import re

from specforge.datasets.definition import DatasetDefinition, FewShot, HubPart, Question, Row, text_id
from specforge.datasets.prompts import boxed
from specforge.errors import DatasetError


def final_number(answer: str) -> str:
    """The number behind the last ``####`` of a reference answer, thousands separators left out."""
    _, marker, number = answer.rpartition("####")
    if not marker or not number.strip():
        raise DatasetError("the answer has no final number behind '####'")
    return number.strip().replace(",", "")


def question(row: Row) -> Question:
    """The problem as it stands, asked for a boxed answer."""
    return Question(boxed(row["question"]), reference=final_number(row["answer"]))


def example(row: Row) -> tuple[str, str]:
    """A worked example: the calculator's ``<<2+3=5>>`` left out, its answer boxed as the instruction asks."""
    worked = re.sub(r"<<.*?>>", "", row["answer"].rpartition("####")[0]).strip()
    return boxed(row["question"]), f"{worked}\nThe final answer is \\boxed{{{final_number(row['answer'])}}}."


DATASET = DatasetDefinition(
    name="gsm8k",
    parts=(HubPart("openai/gsm8k", "test", config="main"),),
    question=question,
    row_id=lambda row: text_id(row["question"]),
    columns=("question", "answer"),
    scorer="number",
    max_new_tokens=4096,
    few_shot=FewShot("train", 5, example),
)

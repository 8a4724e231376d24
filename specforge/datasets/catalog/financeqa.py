"""FinanceQA (AfterQuery 2025): questions on company filings, most of which have a number as their answer."""

from __future__ import annotations

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, text_id

INSTRUCTION = (
    "Think step by step, then give the final answer on the last line in the format 'Answer: ...', "
    "with its unit and sign. Be brief in that line."
)
"""Our own: the publication gives none. It asks for what can be compared."""


def question(row: Row) -> Question:
    """The context, where the row has one, before the question; results are reported by the kind of question."""
    context = str(row.get("context") or "").strip()
    asked = str(row["question"]).strip()
    parts = ([f"Context:\n{context}", f"Question: {asked}"] if context else [asked]) + [INSTRUCTION]
    return Question("\n\n".join(parts), reference=str(row["answer"]), category=str(row.get("question_type") or ""))


DATASET = DatasetDefinition(
    name="financeqa",
    parts=(HubPart("AfterQuery/FinanceQA", "test"),),
    question=question,
    row_id=lambda row: text_id(str(row.get("context") or ""), str(row["question"])),
    columns=("question", "answer"),
    scorer="finance",
    max_new_tokens=16384,
    axes=(SubsetAxis("question type", lambda row: str(row.get("question_type") or "")),),
)

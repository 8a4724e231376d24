"""SimpleQA (Wei et al. 2024): short questions of fact with one answer."""

from __future__ import annotations

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, text_id

DATASET = DatasetDefinition(
    name="simpleqa",
    parts=(HubPart("basicv8vc/SimpleQA", "test"),),
    question=lambda row: Question(str(row["problem"]).strip(), reference=str(row["answer"])),
    row_id=lambda row: text_id(str(row["problem"])),
    columns=("problem", "answer"),
    scorer="qa",
    max_new_tokens=4096,
)

"""MMLU (Hendrycks et al. 2021): multiple choice in 57 subjects of four groups."""

from __future__ import annotations

import json
from typing import Any

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis, text_id
from specforge.datasets.prompts import choice_prompt, letter_of
from specforge.errors import DatasetError
from specforge.scoring.choice import ChoiceReference

STEM = (
    "abstract_algebra",
    "anatomy",
    "astronomy",
    "college_biology",
    "college_chemistry",
    "college_computer_science",
    "college_mathematics",
    "college_physics",
    "computer_security",
    "conceptual_physics",
    "electrical_engineering",
    "elementary_mathematics",
    "high_school_biology",
    "high_school_chemistry",
    "high_school_computer_science",
    "high_school_mathematics",
    "high_school_physics",
    "high_school_statistics",
    "machine_learning",
)
HUMANITIES = (
    "formal_logic",
    "high_school_european_history",
    "high_school_us_history",
    "high_school_world_history",
    "international_law",
    "jurisprudence",
    "logical_fallacies",
    "moral_disputes",
    "moral_scenarios",
    "philosophy",
    "prehistory",
    "professional_law",
    "world_religions",
)
SOCIAL_SCIENCES = (
    "econometrics",
    "high_school_geography",
    "high_school_government_and_politics",
    "high_school_macroeconomics",
    "high_school_microeconomics",
    "high_school_psychology",
    "human_sexuality",
    "professional_psychology",
    "public_relations",
    "security_studies",
    "sociology",
    "us_foreign_policy",
)
OTHER = (
    "business_ethics",
    "clinical_knowledge",
    "college_medicine",
    "global_facts",
    "human_aging",
    "management",
    "marketing",
    "medical_genetics",
    "miscellaneous",
    "nutrition",
    "professional_accounting",
    "professional_medicine",
    "virology",
)
GROUPS = {"stem": STEM, "humanities": HUMANITIES, "social_sciences": SOCIAL_SCIENCES, "other": OTHER}


def choices(row: Row) -> list[str]:
    """The options; a CSV file holds them as a JSON list."""
    found: Any = row["choices"]
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            raise DatasetError(f"the choices are {found!r}; expected a list") from None
    return [str(choice) for choice in found]


def question(row: Row) -> Question:
    """Zero-shot chain of thought; results are reported by subject."""
    options = choices(row)
    subject = str(row.get("subject") or "")
    reference = ChoiceReference(letter_of(row["answer"], len(options)), tuple(options))
    return Question(choice_prompt(row["question"], options), reference=reference, category=subject)


DATASET = DatasetDefinition(
    name="mmlu",
    parts=(HubPart("cais/mmlu", "test", config="all"),),
    question=question,
    row_id=lambda row: text_id(str(row.get("subject") or ""), row["question"], *choices(row)),
    columns=("question", "choices", "answer"),
    scorer="choice",
    max_new_tokens=4096,
    axes=(
        SubsetAxis(
            "subject",
            lambda row: str(row.get("subject") or ""),
            tuple(sorted(subject for group in GROUPS.values() for subject in group)),
            groups=GROUPS,
        ),
    ),
)

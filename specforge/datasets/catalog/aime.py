"""AIME: a year's thirty problems of the American Invitational Mathematics Examination, answers 0 to 999."""

from __future__ import annotations

import re

from specforge.datasets.definition import (
    DatasetDefinition,
    HubPart,
    Question,
    Row,
    SubsetAxis,
    first_column,
    text_id,
)
from specforge.datasets.prompts import boxed


def problem(row: Row) -> str:
    """The problem's text; the years' publishers name the column differently."""
    return str(first_column(row, "Problem", "problem", "question"))


def question(row: Row) -> Question:
    """The problem, asked for a boxed answer."""
    return Question(boxed(problem(row)), reference=str(first_column(row, "Answer", "answer")))


def row_id(row: Row) -> str:
    """The publisher's id where there is one, with the year before it."""
    found = next((row[name] for name in ("ID", "id", "problem_idx") if row.get(name) is not None), None)
    own = text_id(problem(row)) if found is None else str(found)
    return own if own.startswith(year(row)) else f"{year(row)}-{own}"


def year(row: Row) -> str:
    """The year in a ``year`` column, or at the start of an id such as ``2024-II-4``."""
    named = re.match(r"(?:19|20)\d\d(?=\D|$)", str(row.get("year") or row.get("Year") or row.get("ID") or ""))
    return named.group() if named else ""


DATASET = DatasetDefinition(
    name="aime",
    parts=(
        HubPart("Maxwell-Jia/AIME_2024", "train", label="2024"),
        HubPart("MathArena/aime_2025", "train", label="2025"),
        HubPart("MathArena/aime_2026", "train", label="2026"),
    ),
    question=question,
    row_id=row_id,
    columns=("Problem|problem|question", "Answer|answer"),
    scorer="math",
    max_new_tokens=32768,
    axes=(SubsetAxis("year", year, ("2024", "2025", "2026"), default=("2024",), labelled=True),),
)

"""The built-in sample rows: complete, in the Hub's columns, and right by the harness's own scorers."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import pytest

from specforge.datasets.registry import definitions
from specforge.datasets.scorers import ScoringOptions, make_scorer
from specforge.scoring.score import Answer
from tools.pair import samples
from tools.pair.conversation import harness_question
from tools.pair.holdout import sample_rows

HUB_COLUMNS = {
    "aime": {"ID", "Problem", "Solution", "Answer"},
    "ceval": {"id", "question", "A", "B", "C", "D", "answer", "explanation", "subject"},
    "financeqa": {"context", "question", "answer", "chain_of_thought", "question_type", "company"},
    "gpqa": {"Record ID", "Question", "Correct Answer", "Subdomain", "High-level domain"}
    | {f"Incorrect Answer {number}" for number in (1, 2, 3)},
    "gsm8k": {"question", "answer"},
    "humaneval": {"task_id", "prompt", "canonical_solution", "test", "entry_point"},
    "livecodebench": {
        *("question_title", "question_content", "platform", "question_id", "contest_id", "contest_date"),
        *("starter_code", "difficulty", "public_test_cases", "private_test_cases", "metadata"),
    },
    "math500": {"problem", "solution", "answer", "subject", "level", "unique_id"},
    "mbpp": {"source_file", "task_id", "prompt", "code", "test_imports", "test_list"},
    "mmlu": {"question", "subject", "choices", "answer"},
    "mmstar": {"index", "question", "image", "answer", "category", "l2_category", "meta_info"},
    "mtbench": {"prompt", "category", "reference", "prompt_id"},
    "simpleqa": {"metadata", "problem", "answer"},
}
REFERENCE_ANSWERS = {
    "gsm8k": lambda row: row["answer"],
    "math500": lambda row: row["solution"],
    "aime": lambda row: row["Solution"],
    "simpleqa": lambda row: row["answer"],
    "financeqa": lambda row: f"Answer: {row['answer']}",
    "humaneval": lambda row: f"```python\n{row['prompt']}{row['canonical_solution']}```",
    "mbpp": lambda row: f"```python\n{row['code']}\n```",
}


def rows_of(dataset: str) -> list[dict[str, Any]]:
    return [row for name, row in sample_rows() if name == dataset]


def test_every_dataset_has_samples() -> None:
    assert {dataset for dataset, _ in sample_rows()} == set(definitions())


@pytest.mark.parametrize("dataset", sorted(HUB_COLUMNS))
def test_there_are_ten_to_twenty_rows_in_the_columns_of_the_hub(dataset: str) -> None:
    rows = rows_of(dataset)
    assert 10 <= len(rows) <= 20
    assert {frozenset(row) for row in rows} == {frozenset(HUB_COLUMNS[dataset])}


@pytest.mark.parametrize("dataset", sorted(HUB_COLUMNS))
def test_every_row_becomes_a_question_with_a_name_of_its_own(dataset: str) -> None:
    rows = rows_of(dataset)
    names = {definitions()[dataset].row_id(row) for row in rows}
    assert len(names) == len(rows)
    assert all(harness_question(dataset, row).content for row in rows)


@pytest.mark.parametrize("dataset", sorted(HUB_COLUMNS))
def test_the_shipped_rows_are_what_the_recipe_draws(dataset: str) -> None:
    assert samples.draw(dataset) == rows_of(dataset)


@pytest.mark.parametrize("dataset", sorted(REFERENCE_ANSWERS))
def test_the_reference_answers_score_right(dataset: str) -> None:
    scorer = make_scorer(dataset, ScoringOptions(allow_code_execution=True))
    assert scorer is not None
    rows = rows_of(dataset)
    answers = [
        Answer(str(index), harness_question(dataset, row).reference, (REFERENCE_ANSWERS[dataset](row),))
        for index, row in enumerate(rows)
    ]
    scores = scorer.score_all(answers)
    assert [(row, score) for row, score in zip(rows, scores, strict=True) if score.correct is not True] == []


def test_conversations_have_two_turns_and_several_categories() -> None:
    rows = rows_of("mtbench")
    assert {len(row["prompt"]) for row in rows} == {2}
    assert len({row["category"] for row in rows}) >= 4


def test_livecodebench_has_programs_and_methods() -> None:
    assert {bool(row["starter_code"]) for row in rows_of("livecodebench")} == {True, False}


def test_pictures_are_whole_png_files() -> None:
    for row in rows_of("mmstar"):
        picture = base64.b64decode(row["image"]["bytes"])
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", picture[16:24])
        size = struct.unpack(">I", picture[33:37])[0]
        assert picture[37:41] == b"IDAT"
        assert len(zlib.decompress(picture[41 : 41 + size])) == height * (1 + 3 * width)

"""Reference solutions score full marks, and those of another row what chance gives, by ``specforge score``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scoring.shared import read_lines, scored, shared


def test_gsm8k_reference_solutions_are_all_right(tmp_path: Path) -> None:
    file = shared("data/gsm8k/test.jsonl")
    result = scored(tmp_path, "gsm8k", file, ((index, row["answer"]) for index, row in enumerate(read_lines(file))))
    assert (result["correct"], result["total"]) == (1319, 1319)


def test_gsm8k_solutions_of_the_next_row_score_under_3_percent(tmp_path: Path) -> None:
    file = shared("data/gsm8k/test.jsonl")
    rows = read_lines(file)
    outputs = ((index, rows[(index + 1) % len(rows)]["answer"]) for index in range(len(rows)))
    assert scored(tmp_path, "gsm8k", file, outputs)["accuracy"] < 0.03


def test_math500_reference_solutions_are_all_right(tmp_path: Path) -> None:
    file = shared("data/math500/test.jsonl")
    result = scored(tmp_path, "math500", file, ((index, row["solution"]) for index, row in enumerate(read_lines(file))))
    assert (result["correct"], result["total"]) == (500, 500)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [1, 7, 250])
def test_math500_solutions_of_another_row_score_under_3_percent(tmp_path: Path, shift: int) -> None:
    file = shared("data/math500/test.jsonl")
    rows = read_lines(file)
    outputs = ((index, rows[(index + shift) % len(rows)]["solution"]) for index in range(len(rows)))
    assert scored(tmp_path, "math500", file, outputs)["accuracy"] < 0.03


def test_aime_boxed_answers_are_all_right(tmp_path: Path) -> None:
    file = shared("data/aime/aime_2024.jsonl")
    outputs = [(index, rf"So it is $\boxed{{{row['Answer']}}}$.") for index, row in enumerate(read_lines(file))]
    assert scored(tmp_path, "aime", file, outputs)["correct"] == len(outputs) == 30


@pytest.mark.parametrize(
    "form",
    [
        "Answer: {letter}",
        "**Answer: {letter}**",
        "The answer is ({letter}).",
        r"$\boxed{{\text{{{letter}}}}}$",
        "{letter}) {text}",
        "答案是{letter}。",
    ],
)
def test_mmlu_letters_are_all_right_however_they_are_stated(tmp_path: Path, form: str) -> None:
    file = shared("data/mmlu/stem-test.jsonl")
    outputs = [
        (index, form.format(letter="ABCD"[row["answer"]], text=row["choices"][row["answer"]]))
        for index, row in enumerate(read_lines(file))
    ]
    assert scored(tmp_path, "mmlu", file, outputs)["correct"] == len(outputs) == 3018


def test_mmlu_letters_of_the_next_row_score_what_chance_gives(tmp_path: Path) -> None:
    file = shared("data/mmlu/stem-test.jsonl")
    rows = read_lines(file)
    outputs = ((index, f"Answer: {'ABCD'[rows[(index + 1) % len(rows)]['answer']]}") for index in range(len(rows)))
    assert 0.2 < scored(tmp_path, "mmlu", file, outputs)["accuracy"] < 0.3

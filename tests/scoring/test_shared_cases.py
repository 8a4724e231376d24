"""Outputs of the kinds that public trackers report as misjudged, by ``specforge score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.scoring.shared import read_lines, scored, shared, write_lines


def cases(kind: str) -> list[dict[str, Any]]:
    found = [case for case in read_lines(shared("cases/scoring.jsonl")) if case["kind"] == kind]
    assert found
    return found


def results(tmp_path: Path, name: str, rows: list[dict[str, Any]], outputs: list[str]) -> list[dict[str, Any]]:
    data = write_lines(tmp_path / "data.jsonl", rows)
    found: list[dict[str, Any]] = scored(tmp_path, name, data, enumerate(outputs))["rows"]
    return found


def test_math_cases(tmp_path: Path) -> None:
    found = cases("math")
    rows = [{"problem": str(place), "answer": case["reference"]} for place, case in enumerate(found)]
    verdicts = results(tmp_path, "math500", rows, [case["output"] for case in found])
    wrong = [
        (case["note"], row) for case, row in zip(found, verdicts, strict=True) if row["correct"] != case["correct"]
    ]
    assert not wrong


def test_number_cases(tmp_path: Path) -> None:
    found = cases("number")
    rows = [{"question": str(place), "answer": f"#### {case['reference']}"} for place, case in enumerate(found)]
    verdicts = results(tmp_path, "gsm8k", rows, [case["output"] for case in found])
    wrong = [
        (case["note"], row) for case, row in zip(found, verdicts, strict=True) if row["correct"] != case["correct"]
    ]
    assert not wrong


def test_choice_cases(tmp_path: Path) -> None:
    found = cases("choice")
    rows = [
        {
            "question": str(place),
            "subject": "anatomy",
            "choices": [f"option {letter}" for letter in "ABCDEFGHIJ"[: case["options"]]],
            "answer": "ABCDEFGHIJ".index(case["answer"] or "A"),
        }
        for place, case in enumerate(found)
    ]
    verdicts = results(tmp_path, "mmlu", rows, [case["output"] for case in found])
    wrong = [(case["note"], row) for case, row in zip(found, verdicts, strict=True) if row["answer"] != case["answer"]]
    assert not wrong

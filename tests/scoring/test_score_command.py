from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from specforge.commands import score
from specforge.errors import DatasetError, UsageError

ROWS = [{"question": f"What is {n} + 1?", "answer": f"So.\n#### {n + 1}"} for n in range(4)]


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    score.add_parser(parser.add_subparsers())
    return score.run(parser.parse_args(["score", *arguments]))


@pytest.fixture
def data(tmp_path: Path) -> str:
    return f"gsm8k={lines(tmp_path / 'test.jsonl', *ROWS)}"


def scored(tmp_path: Path, data: str, *outputs: Any) -> dict[str, Any]:
    file, result = lines(tmp_path / "outputs.jsonl", *outputs), tmp_path / "result.json"
    assert run("gsm8k", "--outputs", str(file), "--dataset-path", data, "--json", str(result)) == 0
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def test_right_and_wrong_answers_are_counted(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = scored(
        tmp_path,
        data,
        {"index": 0, "output": "#### 1"},
        {"index": 1, "output": "#### 7"},
        {"index": 2, "output": "no idea"},
        {"index": 3, "output": "#### 4", "finish_reason": "length"},
    )
    counts = ("accuracy", "correct", "total", "unparsed", "truncated", "errors")
    assert [found[name] for name in counts] == [0.25, 1, 4, 1, 1, 0]
    printed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert printed["accuracy"].startswith("0.2500")
    assert [printed[name] for name in counts[1:]] == ["1", "4", "1", "1", "0"]


def test_rows_come_in_input_order_with_index_verdict_answer_and_reason(tmp_path: Path, data: str) -> None:
    found = scored(tmp_path, data, {"index": 2, "output": "#### 3"}, {"index": 0, "output": "none"})
    assert found["rows"] == [
        {"index": 2, "correct": True, "answer": "3", "reason": "after ####; reference 3"},
        {"index": 0, "correct": False, "answer": None, "reason": "no number"},
    ]


def test_several_answers_to_one_question_are_averaged_within_it(tmp_path: Path, data: str) -> None:
    found = scored(
        tmp_path,
        data,
        {"index": 0, "output": "1"},
        {"index": 0, "output": "9"},
        {"index": 1, "output": "2"},
    )
    assert (found["accuracy"], found["correct"], found["total"], found["questions"]) == (0.75, 2, 3, 2)


def test_the_harness_own_rows_are_read(tmp_path: Path, data: str) -> None:
    from specforge.datasets import LoadOptions, load, parse_dataset_paths
    from specforge.matrix import BenchmarkSpec

    benchmark = load(BenchmarkSpec.parse("gsm8k"), LoadOptions(dataset_paths=parse_dataset_paths([data])))
    by_index = {prompt.index: prompt.row_id for prompt in benchmark.prompts}

    def row(index: int, text: str, **changes: Any) -> dict[str, Any]:
        turn = {"text": text, "finish_reason": "stop", "output_ids": [1]}
        return {"row_id": by_index[index], "index": 99, "round": 0, "status": "ok", "turns": [turn], **changes}

    found = scored(
        tmp_path,
        data,
        row(0, "#### 1"),
        row(1, "#### 2", status="failed", turns=[]),
        row(2, "#### 9", superseded=True),
        row(3, "", status="skipped", turns=[]),
    )
    assert [(row["index"], row["correct"]) for row in found["rows"]] == [(0, True), (1, False)]
    assert (found["correct"], found["total"], found["errors"]) == (1, 2, 1)


@pytest.mark.parametrize(
    "line,error,message",
    [
        ({"index": 4, "output": "x"}, DatasetError, "line 2: index 4 is outside gsm8k; .* has rows 0 to 3"),
        ({"index": -1, "output": "x"}, DatasetError, "index -1 is outside"),
        ({"index": "1", "output": "x"}, UsageError, "'index' is '1'; expected a row number"),
        ({"index": True, "output": "x"}, UsageError, "'index' is True"),
        ({"output": "x"}, UsageError, "'index' is None"),
        ({"index": 1}, UsageError, "'output' is NoneType; expected a text"),
        ({"index": 1, "output": [1]}, UsageError, "'output' is list"),
        ([1], UsageError, "found list, expected an object"),
        ({"row_id": "?", "turns": []}, DatasetError, r"gsm8k has no row '\?'"),
    ],
)
def test_a_line_that_is_no_output_is_named(
    tmp_path: Path, data: str, line: Any, error: type[Exception], message: str
) -> None:
    file = lines(tmp_path / "outputs.jsonl", {"index": 0, "output": "1"}, line)
    with pytest.raises(error, match=message):
        run("gsm8k", "--outputs", str(file), "--dataset-path", data)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_file_without_outputs_is_refused(tmp_path: Path, data: str, content: str) -> None:
    file = tmp_path / "outputs.jsonl"
    file.write_text(content)
    with pytest.raises(UsageError, match="no outputs in this file"):
        run("gsm8k", "--outputs", str(file), "--dataset-path", data)


def test_a_missing_outputs_file_is_named(tmp_path: Path, data: str) -> None:
    with pytest.raises(UsageError, match=r"--outputs: .*nowhere\.jsonl: No such file"):
        run("gsm8k", "--outputs", str(tmp_path / "nowhere.jsonl"), "--dataset-path", data)


def test_code_is_not_scored_without_the_users_word(tmp_path: Path) -> None:
    file = lines(tmp_path / "outputs.jsonl", {"index": 0, "output": "x"})
    with pytest.raises(UsageError, match="--allow-code-execution"):
        run("humaneval", "--outputs", str(file), "--samples")


def test_a_number_of_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the outputs say which rows are scored"):
        run("gsm8k:5", "--outputs", str(tmp_path / "x"), "--samples")


@pytest.mark.parametrize(
    "name,message", [("gsm9k", "NAME: unknown dataset 'gsm9k'"), ("mmlu::x", "NAME: mmlu has no subject 'x'")]
)
def test_an_unknown_name_is_told_under_its_argument(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(name, "--outputs", str(tmp_path / "x"), "--samples")


def test_built_in_samples_can_be_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "outputs.jsonl", {"index": 0, "output": "Answer: B"})
    assert run("mmlu", "--outputs", str(file), "--samples") == 0
    assert "scorer" in capsys.readouterr().out

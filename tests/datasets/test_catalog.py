"""How each dataset's rows are asked. The rows are written for these tests, in the Hub's columns."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from specforge.datasets import Benchmark, LoadOptions, Prompt, find, known_names, load, parse_dataset_paths
from specforge.datasets.catalog import gpqa, mmstar
from specforge.datasets.prompts import BOXED_INSTRUCTION
from specforge.errors import DatasetError
from specforge.matrix import BenchmarkSpec
from specforge.scoring.choice import ChoiceReference
from specforge.scoring.code.tasks import HumanEvalTask, LiveCodeTask, MbppTask


def asked(tmp_path: Path, name: str, *rows: dict[str, Any]) -> Benchmark:
    file = tmp_path / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load(BenchmarkSpec.parse(name), LoadOptions(dataset_paths=parse_dataset_paths([f"{name}={file}"])))


def one(tmp_path: Path, name: str, row: dict[str, Any]) -> Prompt:
    (prompt,) = asked(tmp_path, name, row).prompts
    return prompt


def text(prompt: Prompt) -> str:
    return str(prompt.messages[-1]["content"])


def test_math_asks_for_a_boxed_answer(tmp_path: Path) -> None:
    row = {"problem": "What is $1+1$?", "solution": "$\\boxed{2}$", "answer": "2", "subject": "Algebra", "level": 1}
    prompt = one(tmp_path, "math500", {**row, "unique_id": "test/algebra/1"})
    assert text(prompt) == f"What is $1+1$?\n\n{BOXED_INSTRUCTION}"
    assert (prompt.row_id, prompt.reference, prompt.category) == ("test/algebra/1", "2", "Algebra")


@pytest.mark.parametrize(
    "row",
    [
        {"ID": "2024-I-1", "Problem": "What?", "Solution": "", "Answer": 33},
        {"problem_idx": 1, "problem": "What?", "answer": 33},
        {"question": "What?", "answer": "33"},
    ],
)
def test_aime_is_read_in_each_publishers_columns(tmp_path: Path, row: dict[str, Any]) -> None:
    prompt = one(tmp_path, "aime", row)
    assert text(prompt).startswith("What?")
    assert prompt.reference == "33"


def test_aime_leaves_room_to_reason(tmp_path: Path) -> None:
    assert asked(tmp_path, "aime", {"question": "What?", "answer": "33"}).max_new_tokens == 32768


def test_gsm8k_takes_the_number_behind_the_mark_without_separators(tmp_path: Path) -> None:
    prompt = one(tmp_path, "gsm8k", {"question": "How much?", "answer": "It is <<1*1200=1200>>1,200.\n#### 1,200"})
    assert prompt.reference == "1200"


def test_mmlu_asks_for_a_last_line_with_the_letter(tmp_path: Path) -> None:
    row = {"question": "Which?", "subject": "anatomy", "choices": ["w", "x", "y", "z"], "answer": 2}
    prompt = one(tmp_path, "mmlu", row)
    assert prompt.reference == ChoiceReference("C", ("w", "x", "y", "z"))
    assert "'Answer: $LETTER'" in text(prompt)
    assert text(prompt).endswith("Which?\n\nA) w\nB) x\nC) y\nD) z")


def test_ceval_asks_in_chinese_and_names_the_subject(tmp_path: Path) -> None:
    row = {"id": 3, "question": "哪个？", "A": "甲", "B": "乙", "C": "丙", "D": "丁", "answer": "D", "subject": "law"}
    prompt = one(tmp_path, "ceval", row)
    assert text(prompt).startswith("以下是中国关于法学考试的单项选择题")
    assert "A. 甲\nB. 乙\nC. 丙\nD. 丁" in text(prompt)
    assert "答案：X" in text(prompt)
    assert prompt.row_id == "law/3"


def test_ceval_refuses_rows_whose_labels_are_withheld(tmp_path: Path) -> None:
    row = {"id": 3, "question": "哪个？", "A": "甲", "B": "乙", "C": "丙", "D": "丁", "answer": ""}
    with pytest.raises(DatasetError, match="the reference '' is none of the 4 options"):
        asked(tmp_path, "ceval", row)


def science(number: int) -> dict[str, Any]:
    wrong = {f"Incorrect Answer {place}": f"wrong {number}.{place}" for place in (1, 2, 3)}
    return {"Record ID": f"rec{number}", "Question": "Which?", "Correct Answer": f"right {number}", **wrong}


def test_gpqa_options_are_shuffled_by_the_row_alone() -> None:
    orders = {number: gpqa.shuffled(science(number)) for number in range(200)}
    assert orders == {number: gpqa.shuffled(science(number)) for number in range(200)}
    places = [order.index(f"right {number}") for number, order in orders.items()]
    assert all(30 <= places.count(place) <= 70 for place in range(4))


def test_gpqa_reference_follows_the_shuffle(tmp_path: Path) -> None:
    for prompt in asked(tmp_path, "gpqa", *(science(number) for number in range(20))).prompts:
        right = prompt.reference.options["ABCD".index(prompt.reference.letter)]
        assert right.startswith("right")
        assert f"{prompt.reference.letter}) {right}" in text(prompt)


def test_mtbench_reads_the_hubs_and_fastchats_columns(tmp_path: Path) -> None:
    hub = {"prompt": ["Hello?", "And?"], "category": "writing", "reference": [], "prompt_id": 81}
    chat = {"question_id": 82, "category": "math", "turns": ["What?", "Why?"], "reference": ["1", "2"]}
    prompts = {prompt.row_id: prompt for prompt in asked(tmp_path, "mtbench", hub, chat).prompts}
    assert text(prompts["81"]) == "Hello?"
    assert prompts["81"].followups == ("And?",)
    assert prompts["81"].reference is None
    assert prompts["82"].reference == ("1", "2")


def test_humaneval_shows_the_head_in_a_fenced_block(tmp_path: Path) -> None:
    head = 'def one() -> int:\n    """Return 1."""\n'
    row = {"task_id": "X/0", "prompt": head, "test": "def check(c):\n    assert c() == 1\n", "entry_point": "one"}
    prompt = one(tmp_path, "humaneval", row)
    assert f"```python\n{head.strip()}\n```" in text(prompt)
    assert prompt.reference == HumanEvalTask(head, row["test"], "one")


@pytest.mark.parametrize("column", ["prompt", "text"])
def test_mbpp_reads_the_sanitized_and_the_full_columns(tmp_path: Path, column: str) -> None:
    row = {"task_id": 2, column: "Write one().", "test_list": ["assert one() == 1"], "test_imports": ["import math"]}
    prompt = one(tmp_path, "mbpp", row)
    assert "Write one()." in text(prompt)
    assert "assert one() == 1" in text(prompt)
    assert prompt.reference == MbppTask(("assert one() == 1",), "import math")


def contest(**changes: Any) -> dict[str, Any]:
    tests = json.dumps([{"input": "1", "output": "2", "testtype": "stdin"}])
    row = {"question_id": "q", "question_content": "Add one.", "starter_code": "", "difficulty": "easy"}
    return {**row, "public_test_cases": tests, "private_test_cases": "[]", "metadata": "{}", **changes}


def test_livecodebench_asks_for_a_program_without_starter_code(tmp_path: Path) -> None:
    prompt = one(tmp_path, "livecodebench", contest())
    assert prompt.messages[0]["role"] == "system"
    assert "Read the inputs from stdin" in text(prompt)
    assert isinstance(prompt.reference, LiveCodeTask)
    assert prompt.reference.func_name is None


def test_livecodebench_shows_the_starter_code_where_there_is_some(tmp_path: Path) -> None:
    tests = json.dumps([{"input": "1", "output": "2", "testtype": "functional"}])
    row = contest(
        starter_code="class Solution:\n    def add(self, x):",
        public_test_cases=tests,
        metadata=json.dumps({"func_name": "add"}),
    )
    prompt = one(tmp_path, "livecodebench", row)
    assert "def add(self, x):" in text(prompt)
    assert prompt.reference.func_name == "add"


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    "image",
    [
        {"bytes": base64.b64encode(PIXEL).decode(), "path": None},
        base64.b64encode(PIXEL).decode(),
        f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}",
    ],
)
def test_mmstar_sends_the_image_as_a_data_url(tmp_path: Path, image: Any) -> None:
    row = {"index": 4, "question": "What?\nOptions: A: a, B: b, C: c, D: d", "image": image, "answer": "B"}
    prompt = one(tmp_path, "mmstar", row)
    picture, question = prompt.messages[-1]["content"]
    assert prompt.has_image
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert "Options: A: a, B: b" in question["text"]
    assert prompt.reference == ChoiceReference("B", ("a", "b", "c", "d"))


def test_an_image_that_is_none_is_told(tmp_path: Path) -> None:
    row = {"index": 4, "question": "What?", "image": base64.b64encode(b"plain text").decode(), "answer": "B"}
    with pytest.raises(DatasetError, match=r"unknown image format.*expected PNG, JPEG, GIF or WebP"):
        asked(tmp_path, "mmstar", row)


@pytest.mark.parametrize(
    "question,options",
    [
        ("What?\nOptions: A: red, B: blue, C: both A and B, D: none", ("red", "blue", "both A and B", "none")),
        ("What? Options: A: 1, 2, B: 3, 4", ("1, 2", "3, 4")),
        ("What?", ("", "", "", "")),
    ],
)
def test_mmstar_options_are_read_from_the_question(question: str, options: tuple[str, ...]) -> None:
    assert mmstar.options(question) == options


def test_only_mmstar_needs_a_server_that_sees() -> None:
    assert [name for name in known_names() if find(name).images] == ["mmstar"]


def test_simpleqa_is_asked_as_it_stands(tmp_path: Path) -> None:
    prompt = one(tmp_path, "simpleqa", {"metadata": "{}", "problem": "Who?", "answer": "Nobody"})
    assert text(prompt) == "Who?"


@pytest.mark.parametrize(
    "context,start", [("The filing.", "Context:\nThe filing.\n\nQuestion: How much?"), (None, "How much?")]
)
def test_financeqa_puts_the_context_first_where_there_is_one(tmp_path: Path, context: str | None, start: str) -> None:
    row = {"context": context, "question": "How much?", "answer": "$5 million", "question_type": "basic"}
    prompt = one(tmp_path, "financeqa", row)
    assert text(prompt).startswith(start)
    assert "'Answer: ...'" in text(prompt)
    assert prompt.category == "basic"

"""Loading from the Hub, through a scripted one: real huggingface_hub, real datasets, real sockets."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.datasets.scripted_hub import Repository, ScriptedHub, scripted_hub

PROJECT = Path(__file__).parents[2]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def card(configs: Mapping[str, Mapping[str, str]]) -> bytes:
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        lines += [line for split, path in splits.items() for line in (f"  - split: {split}", f"    path: {path}")]
    return ("\n".join([*lines, "---"]) + "\n").encode()


def images_parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "index": [7],
            "question": ["What is shown?\nOptions: A: a dot, B: a line"],
            "image": [{"bytes": PIXEL, "path": "0.png"}],
            "answer": ["A"],
            "category": ["math"],
            "l2_category": ["geometry"],
        }
    )
    value = {"_type": "Value"}
    features = {name: {"dtype": "string", **value} for name in ("question", "answer", "category", "l2_category")}
    features |= {"index": {"dtype": "int64", **value}, "image": {"_type": "Image"}}
    schema = table.schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    written = io.BytesIO()
    parquet.write_table(table.cast(schema), written)
    return written.getvalue()


def contest(number: int) -> dict[str, Any]:
    tests = json.dumps([{"input": "1", "output": "2", "testtype": "stdin"}])
    return {
        "question_id": f"q{number}",
        "question_content": f"Problem {number}",
        "starter_code": "",
        "difficulty": "hard" if number % 2 else "easy",
        "public_test_cases": tests,
        "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(tests))).decode(),
        "metadata": "{}",
    }


def exam(question: str) -> dict[str, Any]:
    return {"id": 0, "question": question, "A": "1", "B": "2", "C": "3", "D": "4", "answer": "B", "explanation": ""}


SUMS = [{"question": f"What is {n} + 1?", "answer": f"<<{n}+1={n + 1}>>It is.\n#### {n + 1}"} for n in range(12)]
SCIENCE = {
    "Question": "Which?",
    "Correct Answer": "this",
    **{f"Incorrect Answer {n}": f"that {n}" for n in (1, 2, 3)},
    "Record ID": "rec1",
    "High-level domain": "Physics",
}
REPOSITORIES = {
    "openai/gsm8k": Repository(
        {
            "README.md": card({"main": {"train": "main/train.jsonl", "test": "main/test.jsonl"}}),
            "main/train.jsonl": json_lines(SUMS[6:]),
            "main/test.jsonl": json_lines(SUMS[:6]),
        },
        revisions=("v1.0",),
    ),
    "ceval/ceval-exam": Repository(
        {
            "README.md": card({name: {"val": f"{name}/val.jsonl"} for name in ("accountant", "law")}),
            "accountant/val.jsonl": json_lines([exam("会计？")]),
            "law/val.jsonl": json_lines([exam("法律？")]),
        }
    ),
    "Idavidrein/gpqa": Repository(
        {
            "README.md": card({"gpqa_diamond": {"train": "gpqa_diamond.jsonl"}}),
            "gpqa_diamond.jsonl": json_lines([SCIENCE]),
        },
        gated=True,
    ),
    "livecodebench/code_generation_lite": Repository(
        {
            "code_generation_lite.py": b"raise SystemExit('never run')\n",
            "test5.jsonl": json_lines([contest(5)]),
            "test6.jsonl": json_lines([contest(6), contest(7)]),
        }
    ),
    "Lin-Chen/MMStar": Repository(
        {"README.md": card({"val": {"val": "mmstar.parquet"}}), "mmstar.parquet": images_parquet()}
    ),
}


class Child:
    """The process that loads, kept over a module's tests since its libraries take seconds to import."""

    def __init__(self, endpoint: str, cache: Path, **environment: str) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.datasets.hub_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PROJECT,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("HF_")},
                "HF_ENDPOINT": endpoint,
                "HF_HOME": str(cache),
                "HF_HUB_DISABLE_XET": "1",
                **environment,
            },
        )

    def load(self, spec: str, **options: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"spec": spec, "options": options}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def hub() -> Iterator[ScriptedHub]:
    with scripted_hub(REPOSITORIES) as running:
        yield running


@pytest.fixture(scope="module")
def child(hub: ScriptedHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    loading = Child(hub.url, tmp_path_factory.mktemp("hub"))
    yield loading
    loading.close()


def test_the_commit_that_the_hub_resolved_is_recorded(child: Child) -> None:
    source = child.load("gsm8k:2")["source"]
    assert source["kind"] == "hub"
    assert source["location"] == "openai/gsm8k"
    assert source["revision"] == REPOSITORIES["openai/gsm8k"].commit
    assert source["split"] == "test"
    assert source["sha256"] is None


def test_a_named_revision_is_resolved_to_its_commit(child: Child) -> None:
    assert child.load("gsm8k:2", revision="v1.0")["source"]["revision"] == REPOSITORIES["openai/gsm8k"].commit


def test_a_revision_for_another_dataset_does_not_count(child: Child) -> None:
    assert "error" not in child.load("gsm8k:2", revision="mmlu=no-such-revision")


def test_few_shot_examples_come_from_the_train_split(child: Child) -> None:
    loaded = child.load("gsm8k:1")
    assert loaded["source"]["few_shot"] == "5 from train"
    asked = [message["content"] for message in loaded["prompts"][0]["messages"] if message["role"] == "user"]
    assert len(asked) == 6
    questions = {row["question"] for row in SUMS[:6]}
    assert [any(question in text for question in questions) for text in asked] == [False] * 5 + [True]


def test_an_unknown_revision_names_the_flag(child: Child) -> None:
    answer = child.load("gsm8k:2", revision="no-such-revision")
    assert answer["error"] == "DatasetError"
    assert "'no-such-revision'" in answer["message"]
    assert "--dataset-revision" in answer["message"]


def test_only_the_asked_subjects_are_fetched(hub: ScriptedHub, child: Child) -> None:
    before = len(hub.requests)
    loaded = child.load("ceval:5:accountant")
    assert [prompt["subset"] for prompt in loaded["prompts"]] == ["accountant"]
    assert [prompt["row_id"] for prompt in loaded["prompts"]] == ["accountant/0"]
    assert "注册会计师" in loaded["prompts"][0]["messages"][0]["content"]
    assert not [request for request in hub.requests[before:] if "law/val" in request]


def test_a_gated_dataset_says_what_to_do(child: Child) -> None:
    answer = child.load("gpqa:1")
    assert answer["error"] == "DatasetError"
    for hint in ("gated", "HF_TOKEN", "--dataset-path gpqa=FILE"):
        assert hint in answer["message"]


def test_a_gated_dataset_opens_with_a_token(hub: ScriptedHub, tmp_path: Path) -> None:
    loading = Child(hub.url, tmp_path, HF_TOKEN=hub.token)
    try:
        loaded = loading.load("gpqa:1")
    finally:
        loading.close()
    assert [prompt["row_id"] for prompt in loaded["prompts"]] == ["rec1"]


def test_a_dataset_that_the_hub_does_not_show_says_what_to_do(child: Child) -> None:
    answer = child.load("simpleqa:1")
    assert answer["error"] == "DatasetError"
    assert "basicv8vc/SimpleQA" in answer["message"]
    assert "--dataset-path simpleqa=FILE" in answer["message"]


def test_an_unreachable_hub_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        loading = Child(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path)
        try:
            answer = loading.load("math500:1")
        finally:
            loading.close()
    assert answer["error"] == "DatasetError"
    for hint in ("can't be reached", "HF_ENDPOINT", "--dataset-path math500=FILE"):
        assert hint in answer["message"]


def test_a_repository_that_is_a_script_is_read_by_its_files(hub: ScriptedHub, child: Child) -> None:
    before = len(hub.requests)
    loaded = child.load("livecodebench")
    assert {prompt["row_id"] for prompt in loaded["prompts"]} == {"q6", "q7"}
    assert not [request for request in hub.requests[before:] if request.endswith(".py")]


def test_difficulty_and_release_narrow_each_other(child: Child) -> None:
    loaded = child.load("livecodebench:9:hard,v5,v6")
    assert {prompt["row_id"] for prompt in loaded["prompts"]} == {"q5", "q7"}


def test_images_arrive_as_data_urls(child: Child) -> None:
    loaded = child.load("mmstar")
    picture, text = loaded["prompts"][0]["messages"][0]["content"]
    assert loaded["prompts"][0]["has_image"]
    assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    assert "A: a dot" in text["text"]

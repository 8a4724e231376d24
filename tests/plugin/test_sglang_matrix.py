"""The matrix against the real SGLang on CPU: launched and ended by the harness, and attached to through a proxy."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.stage import Stage
from tests.support.processes import ROOT, mentioning
from tests.support.recording_proxy import RecordingProxy, generations, read_exchanges
from tests.support.recount import recount
from tests.support.sglang import ServerFactory, SglangModels

pytestmark = pytest.mark.sglang

DATA = ROOT.parent / "shared" / "data"
LIMIT = 40
WITHIN = 900.0


def rows(stage: Stage, *, few_shot: bool) -> list[str]:
    """The flags that name the rows: real ones where they are at hand, else the stage's own."""
    if not DATA.is_dir():
        return [*stage.data[:2], "--max-new-tokens", str(LIMIT)]
    gsm8k = DATA / "gsm8k" if few_shot else DATA / "gsm8k" / "test.jsonl"
    paths = [f"--dataset-path=gsm8k={gsm8k}", f"--dataset-path=mtbench={DATA / 'mtbench' / 'question.jsonl'}"]
    return [*paths, "--max-new-tokens", str(LIMIT)]


def launch(stage: Stage, launch_command: str, models: SglangModels, *flags: str) -> dict[str, dict[str, Any]]:
    """Runs a matrix that launches the tiny target, and gives its records; no server of it may be left."""
    name = f"tiny-{uuid.uuid4().hex}"
    run = stage.pytest(
        *("bench_tests", "--model-path", str(models.target), "--launch-command", launch_command),
        *("--dtype", "float32", "--server-args", f"--served-model-name {name}"),
        *(*rows(stage, few_shot=True), *flags),
        within=WITHIN,
    )
    assert run.code == 0, run.output
    assert mentioning(name) == []
    assert len(list(stage.results.rglob("server-*.log"))) > 0
    return stage.records()


def check_counts(stage: Stage, record: dict[str, Any]) -> None:
    """A speculative record's numbers against its own rows, and against what SGLang's counts must satisfy."""
    metrics, config = record["metrics"], record["config"]
    turns = [turn for row in stage.rows(record) for turn in row["turns"] if turn["verify_steps"]]
    assert turns
    steps = sum(turn["verify_steps"] for turn in turns)
    assert metrics["spec_verify_ct"] == steps == sum(metrics["correct_drafts_histogram"])
    assert metrics["acceptance_length"] == sum(turn["output_tokens"] for turn in turns) / steps >= 1
    correct = sum(at * count for at, count in enumerate(metrics["correct_drafts_histogram"]))
    assert metrics["correct_drafts"] == correct
    assert metrics["acceptance_length_decode"] == 1 + correct / steps
    assert metrics["proposed_drafts"] == steps * (config["num_draft_tokens"] - 1)
    for turn in turns:
        assert len(turn["output_ids"]) == turn["output_tokens"] <= 1 + turn["verify_steps"] + turn["correct_drafts"]


def check_same_prompts(records: Sequence[dict[str, Any]]) -> None:
    """Every configuration was asked the same, down to the token ids that the server made of it."""
    first = records[0]["benchmark"]
    assert all(first["hashes"]["token_ids"])
    for record in records[1:]:
        assert record["benchmark"] == first


def test_target_ngram_and_eagle3_are_launched_measured_and_ended_one_after_the_other(
    stage: Stage, sglang_launch_command: str, sglang_models: SglangModels
):
    records = launch(
        *(stage, sglang_launch_command, sglang_models),
        *("--speculative-draft-model-path", str(sglang_models.eagle3)),
        *("--config-list", "2,0,0,0", "2,0,0,6", "2,3,1,4", "--benchmark-list", "gsm8k:4", "mtbench:2"),
    )
    assert len(records) == 6
    assert {record["status"] for record in records.values()} == {"ok"}
    algorithms = [None, "NGRAM", "EAGLE3"]
    for benchmark in ("gsm8k:4", "mtbench:2"):
        cells = [records[f"{config}-{benchmark}"] for config in ("2,0,0,0", "2,0,0,6", "2,3,1,4")]
        assert [record["config"]["algorithm"] for record in cells] == algorithms
        assert [record["environment"]["server"]["speculative_algorithm"] for record in cells] == algorithms
        check_same_prompts(cells)
        target, *speculative = cells
        assert target["metrics"]["acceptance_length"] is None
        for record in speculative:
            check_counts(stage, record)
            assert record["metrics"]["speedup"] is not None
            assert record["metrics"]["lossless"]["compared"] >= 2
            assert record["metrics"]["lossless"]["identical_share"] > 0.5, "in float32 only ties may part"
        for record in cells:
            turns = [turn for row in stage.rows(record) for turn in row["turns"]]
            assert len(turns) == 4
            assert record["metrics"]["ttft"]["source"] == "server"
            assert record["environment"]["route"] == "/v1/chat/completions"


def test_standalone_with_the_target_as_its_own_draft_accepts_nearly_all(
    stage: Stage, sglang_launch_command: str, sglang_models: SglangModels
):
    records = launch(
        *(stage, sglang_launch_command, sglang_models),
        *("--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", str(sglang_models.target)),
        *("--config-list", "2,3,1,4", "--benchmark-list", "gsm8k:4"),
    )
    (record,) = records.values()
    check_counts(stage, record)
    assert record["metrics"]["acceptance_length_decode"] > 3.5, "of at most 4"


def test_smollm2_is_attached_to_and_its_record_equals_the_raw_responses(
    stage: Stage, sglang_server: ServerFactory, sglang_models: SglangModels, tmp_path: Path
):
    flags = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "6", "--max-running-requests", "2")
    url = sglang_server(sglang_models.smollm2, *flags)
    with RecordingProxy(url, tmp_path / "wire.jsonl") as proxy:
        run = stage.pytest(
            *("bench_tests", "--base-url", proxy.base_url, *rows(stage, few_shot=False)),
            *("--config-list", "2,0,0,0", "--benchmark-list", "gsm8k:3", "mtbench:2"),
            within=WITHIN,
        )
    assert run.code == 0, run.output
    answered = [(json.loads(e.request), e.response) for e in generations(read_exchanges(tmp_path / "wire.jsonl"))]
    for record in stage.records().values():
        asked = [row["messages"] for row in stage.rows(record)]
        responses = [said for body, said in answered if body["messages"][: len(asked[0])] in asked]
        counted = recount(responses)
        metrics = record["metrics"]
        assert metrics["requests"] == counted.answers
        assert metrics["output_tokens"] == counted.tokens
        assert metrics["prompt_tokens"] == counted.prompt_tokens
        assert metrics["cached_token_share"] == counted.cached_tokens / counted.prompt_tokens
        assert metrics["spec_verify_ct"] == counted.steps
        assert metrics["acceptance_length"] == counted.acceptance_length
        assert metrics["acceptance_rate"] == counted.acceptance_rate
        assert metrics["correct_drafts_histogram"] == counted.histogram
        assert record["config"]["algorithm"] == "NGRAM"
        check_counts(stage, record)
        texts = [turn["text"] for row in stage.rows(record) for turn in row["turns"]]
        assert all(texts)
        assert sorted(texts) == sorted(json.loads(said)["choices"][0]["message"]["content"] for said in responses)

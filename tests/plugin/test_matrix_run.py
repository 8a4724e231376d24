"""A whole matrix over servers that it launches: what is started, asked, counted, recorded and left behind."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.stage import LIMIT, Stage
from tests.support.processes import Completed, outer_pytest_removed, running
from tests.support.recount import recount
from tests.support.scripted import Answer, Replies, Script, Wire

ROUNDS = 2
CELLS = ["2,0,0,0-gsm8k:5", "2,0,0,0-mtbench:3", "2,3,1,4-gsm8k:5", "2,3,1,4-mtbench:3"]
GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
HARNESS_FIELDS = {"model", "messages", "rid", "return_meta_info", "return_token_ids", "max_tokens", "seed"}


class Ran:
    """A matrix that has run once for all tests of this module."""

    def __init__(self, stage: Stage, run: Completed, exported: Path) -> None:
        self.stage = stage
        self.run = run
        self.exported = exported
        self.records = stage.records()

    def measured(self, cell: str) -> list[dict[str, Any]]:
        """The log's entries of a cell's measured requests: told from the server's log alone."""
        config, _, benchmark = cell.partition("-")
        word = "Talk" if benchmark.startswith("mtbench") else "Row"
        drafts = config != "2,0,0,0"
        found, on_this_server = [], False
        for entry in self.stage.log_entries():
            if entry.get("event") == "start":
                on_this_server = ("--speculative-algorithm" in entry["argv"]) == drafts
            elif on_this_server and entry["ordinal"] is not None:
                body = entry["request"]
                if body["max_tokens"] == LIMIT and word in body["messages"][0]["content"]:
                    found.append(entry)
        return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two configurations, two benchmarks, two rounds; one answer in three has no speculative fields."""
    stage = Stage(tmp_path_factory.mktemp("matrix"))
    answers = tuple(Answer(f"Row {at}:", rf"That makes \boxed{{{at}}}.") for at in range(0, 24, 2))
    replies = Replies(tokens=(1, 70), unverified_share=0.3, answers=answers)
    exported = stage.folder / "exported.json"
    run = stage.pytest(
        *("bench_tests", *stage.launching(Script(replies=replies, wire=Wire(prefix_cache=True)))),
        *("--config-list", "2,0,0,0", "2,3,1,4", "--benchmark-list", "gsm8k:5", "mtbench:3"),
        *("--rounds", str(ROUNDS), "--note", "a note", "--name", "my run", "--api-key", "sesame"),
        f"--benchmark-json={exported}",
    )
    return Ran(stage, run, exported)


def test_it_passes_and_ends_with_a_table(ran: Ran):
    assert ran.run.code == 0, ran.run.output
    table = ran.run.output.partition("= specforge =")[2]
    for line in ("configuration", "2,0,0,0 ", "2,3,1,4 EAGLE3", "record: results/my_run-"):
        assert line in table
    assert list(ran.records) == CELLS


def test_each_configuration_s_server_starts_once_and_has_ended_before_the_next(ran: Ran):
    events = ran.stage.log_entries()
    starts = [at for at, entry in enumerate(events) if entry.get("event") == "start"]
    flags = [" ".join(events[at]["argv"]) for at in starts]
    assert len(flags) == 2
    assert "--speculative" not in flags[0]
    steps = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    assert f"--speculative-algorithm EAGLE3 --speculative-draft-model-path org/draft {steps}" in flags[1]
    for flag in flags:
        assert "--model-path org/model --host 127.0.0.1 --port" in flag
        assert "--max-running-requests 2 --cuda-graph-max-bs-decode 2 --random-seed 42 --enable-metrics" in flag
    assert ran.stage.servers() == []


@pytest.mark.parametrize("cell", CELLS)
def test_the_record_equals_a_count_of_the_raw_responses(ran: Ran, cell: str):
    counted = recount(entry["response"] for entry in ran.measured(cell))
    record = ran.records[cell]
    metrics = record["metrics"]
    prompts, turns = (5, 1) if "gsm8k" in cell else (3, 2)
    assert metrics["requests"] == counted.answers == prompts * turns * ROUNDS
    assert metrics["output_tokens"] == counted.tokens == sum(record["requests"]["output_tokens"])
    assert metrics["prompt_tokens"] == counted.prompt_tokens
    assert metrics["cached_token_share"] == counted.cached_tokens / counted.prompt_tokens
    assert sum(round_["output_tokens"] for round_ in metrics["rounds"]) == counted.tokens
    assert metrics["output_throughput"] == counted.tokens / metrics["duration"]
    if cell.startswith("2,0,0,0"):
        assert counted.verified == 0
        assert metrics["acceptance_length"] is None
        assert set(record["requests"]["verify_steps"]) == {None}
        return
    assert counted.verified > 0
    assert metrics["spec_verify_ct"] == counted.steps == sum(s or 0 for s in record["requests"]["verify_steps"])
    assert metrics["acceptance_length"] == counted.acceptance_length
    assert metrics["acceptance_length_decode"] == counted.acceptance_length_decode
    assert metrics["acceptance_rate"] == counted.acceptance_rate
    assert metrics["correct_drafts_histogram"] == counted.histogram


def test_some_answers_of_the_script_were_never_verified(ran: Ran):
    """Else the test above would show less than it says."""
    counts = [recount(entry["response"] for entry in ran.measured(cell)) for cell in CELLS[2:]]
    assert sum(count.verified for count in counts) < sum(count.answers for count in counts)


def test_every_configuration_asks_the_same_in_the_same_order(ran: Ran):
    for target, draft in ((CELLS[0], CELLS[2]), (CELLS[1], CELLS[3])):
        firsts = [
            Counter(json.dumps(entry["request"]["messages"]) for entry in ran.measured(cell))
            for cell in (target, draft)
        ]
        assert firsts[0] == firsts[1]
        assert ran.records[target]["benchmark"] == ran.records[draft]["benchmark"]
        assert ran.records[target]["requests"]["row_id"] == ran.records[draft]["requests"]["row_id"]


def test_every_measured_request_states_greedy_sampling_a_seed_and_no_more(ran: Ran):
    for cell in CELLS:
        bodies = [entry["request"] for entry in ran.measured(cell)]
        said = [{name: value for name, value in body.items() if name not in HARNESS_FIELDS} for body in bodies]
        assert said == [GREEDY] * len(bodies)
        assert Counter(body["seed"] for body in bodies) == {42: len(bodies) // 2, 43: len(bodies) // 2}


def test_accuracy_is_over_prompts_with_the_rounds_averaged(ran: Ran):
    for cell in (CELLS[0], CELLS[2]):
        record = ran.records[cell]
        asked = [entry["request"]["messages"][0]["content"] for entry in ran.measured(cell)]
        even = [int(content.partition("Row ")[2].partition(":")[0]) % 2 == 0 for content in asked]
        assert record["metrics"]["accuracy"] == sum(even) / len(even)
        assert record["metrics"]["accuracy_counts"]["total"] == 10
    talk = ran.records[CELLS[1]]["metrics"]
    assert talk["accuracy"] is None
    assert "judge" in talk["reasons"]["accuracy"]


def test_pytest_benchmark_s_statistics_are_the_measured_windows(ran: Ran):
    for document in (ran.stage.document(), json.loads(ran.exported.read_text())):
        assert len(document["benchmarks"]) == 4
        for entry in document["benchmarks"]:
            windows = [round_["duration"] for round_ in entry["extra_info"]["metrics"]["rounds"]]
            assert entry["stats"]["data"] == windows
            assert (entry["stats"]["min"], entry["stats"]["max"]) == (min(windows), max(windows))
            assert entry["stats"]["rounds"] == ROUNDS
            assert entry["fullname"] == f"bench_tests/test_benchmark.py::{entry['name']}"
            assert entry["group"] == entry["extra_info"]["benchmark"]["spec"]


def test_both_files_hold_the_same_records(ran: Ran):
    exported = json.loads(ran.exported.read_text())["benchmarks"]
    assert {entry["name"]: entry["extra_info"] for entry in exported} == {
        f"test_benchmark[{cell}]": record for cell, record in ran.records.items()
    }
    assert ran.stage.document()["unmeasured"] == []


def test_pytest_benchmark_can_compare_the_files(ran: Ran):
    (own,) = ran.stage.results.glob("*.json")
    command = [sys.executable, "-m", "pytest_benchmark", "compare", str(own), str(ran.exported), "--columns=min,rounds"]
    folder = ran.stage.folder
    with running(command, cwd=folder, environment=outer_pytest_removed(), log=folder / "compare.log") as program:
        assert program.wait(60) == 0, program.output
    for cell in CELLS:
        assert program.output.count(f"test_benchmark[{cell}]") == 2


def test_a_record_has_the_documented_parts(ran: Ran):
    record = ran.records[CELLS[2]]
    assert set(record) == {
        *("format", "config", "benchmark", "metrics", "requests", "environment", "status", "reason", "rows"),
    }
    assert record["config"] == {
        "batch_size": 2,
        "num_steps": 3,
        "topk": 1,
        "num_draft_tokens": 4,
        "algorithm": "EAGLE3",
    }
    benchmark = record["benchmark"]
    assert (benchmark["spec"], benchmark["name"], benchmark["num_prompts"], benchmark["seed"]) == (
        "gsm8k:5",
        "gsm8k",
        5,
        42,
    )
    assert benchmark["source"]["kind"] == "file"
    assert len(benchmark["row_ids"]) == len(set(benchmark["row_ids"])) == 5
    assert (record["status"], record["reason"]) == ("ok", None)
    assert len({len(column) for column in record["requests"].values()}) == 1
    environment = record["environment"]
    assert (environment["note"], environment["name"], environment["backend"]) == ("a note", "my run", "launch")
    assert environment["server"]["version"] == "0.5.23"
    assert environment["server"]["speculative_num_draft_tokens"] == 4
    assert environment["template_hash"] is not None


def test_no_secret_is_in_what_is_left_behind(ran: Ran):
    written = [path for path in ran.stage.results.rglob("*") if path.is_file()]
    assert len(written) >= 7
    assert [path for path in written if "sesame" in path.read_text()] == []
    assert "sesame" not in ran.exported.read_text()


def test_rows_hold_texts_and_token_ids_as_the_server_sent_them(ran: Ran):
    record = ran.records[CELLS[3]]
    rows = ran.stage.rows(record)
    assert len(rows) == 3 * ROUNDS
    raw: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for entry in ran.measured(CELLS[3]):
        choice = json.loads(entry["response"])["choices"][0]
        raw[choice["message"]["content"], tuple(choice["response_token_ids"])] += 1
    assert Counter((turn["text"], tuple(turn["output_ids"])) for row in rows for turn in row["turns"]) == raw


def test_the_rows_file_is_the_one_that_the_record_s_hash_is_of(ran: Ran):
    for record in ran.records.values():
        content = (ran.stage.results / record["rows"]["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == record["rows"]["sha256"]

"""A cell's numbers against a count made from raw responses alone."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.measurement.cells import LIMIT, benchmark, measure, measured_bodies, questions, target
from tests.support.recording_proxy import Exchange, RecordingProxy, generations, read_exchanges
from tests.support.recount import recount
from tests.support.scripted import Replies, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

SOME_UNVERIFIED = Replies(tokens=(1, 60), unverified_share=0.3)
PROMPTS = questions(10, followups=("And then?",))


def limit_of(exchange: Exchange) -> int:
    """The token limit that a request states, on either route."""
    body = json.loads(exchange.request)
    return int(body.get("max_tokens") or body.get("sampling_params", {}).get("max_new_tokens") or 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("older_names", [False, True], ids=["names of today", "older names"])
def test_every_count_is_the_one_in_the_raw_responses(tmp_path: Path, stream: bool, older_names: bool):
    script = Script(
        speculation=Speculation(),
        replies=SOME_UNVERIFIED,
        wire=Wire(prefix_cache=True, older_names=older_names),
    )
    # Two rows ask the same, so that the second of them finds its prompt in the cache.
    twin = dataclasses.replace(PROMPTS[0], row_id="twin", index=99)
    with (
        ScriptedServer(script) as server,
        RecordingProxy(server.base_url, tmp_path / "wire.jsonl") as proxy,
    ):
        probed = target(proxy.base_url, stream=stream)
        record, rows = measure(probed, (*PROMPTS, twin), tmp_path, rounds=2)
        probed.close()
    measured = [e for e in generations(read_exchanges(tmp_path / "wire.jsonl")) if limit_of(e) == LIMIT]
    counted = recount(exchange.response for exchange in measured)
    metrics = record["metrics"]

    assert counted.answers == metrics["requests"] == 2 * 2 * 11
    assert 0 < counted.verified < counted.answers, "the script must leave some answers without speculative fields"
    assert counted.cached_tokens > 0, "the script must have some prompts cached"
    assert {
        "output_tokens": metrics["output_tokens"],
        "prompt_tokens": metrics["prompt_tokens"],
        "spec_verify_ct": metrics["spec_verify_ct"],
        "correct_drafts": metrics["correct_drafts"],
        "proposed_drafts": metrics["proposed_drafts"],
        "correct_drafts_histogram": metrics["correct_drafts_histogram"],
        "acceptance_length": metrics["acceptance_length"],
        "acceptance_length_decode": metrics["acceptance_length_decode"],
        "acceptance_rate": metrics["acceptance_rate"],
        "cached_token_share": metrics["cached_token_share"],
    } == {
        "output_tokens": counted.tokens,
        "prompt_tokens": counted.prompt_tokens,
        "spec_verify_ct": counted.steps,
        "correct_drafts": counted.correct,
        "proposed_drafts": counted.proposed,
        "correct_drafts_histogram": counted.histogram,
        "acceptance_length": counted.acceptance_length,
        "acceptance_length_decode": counted.acceptance_length_decode,
        "acceptance_rate": counted.acceptance_rate,
        "cached_token_share": counted.cached_tokens / counted.prompt_tokens,
    }
    assert Counter(map(row_counts, rows)) == Counter(arrays_of(record["requests"]))
    assert sum(record["requests"]["output_tokens"]) == counted.tokens
    assert sum(steps or 0 for steps in record["requests"]["verify_steps"]) == counted.steps


def row_counts(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row's turns summed: what the arrays hold of it."""
    turns = row["turns"]
    verified = [turn for turn in turns if turn["verify_steps"] is not None]
    return (
        row["row_id"],
        row["round"],
        sum(turn["output_tokens"] for turn in turns),
        sum(turn["verify_steps"] for turn in verified) if verified else None,
        sum(turn["correct_drafts"] for turn in verified) if verified else None,
    )


def arrays_of(requests: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    """The same from a record's parallel arrays."""
    names = ("row_id", "round", "output_tokens", "verify_steps", "correct_drafts")
    return list(zip(*(requests[name] for name in names), strict=True))


def test_each_request_s_entry_is_its_own_response_s_whatever_the_order_of_arrival(tmp_path: Path):
    with ScriptedServer(Script(speculation=Speculation(), replies=SOME_UNVERIFIED)) as server:
        record, rows = measure(server.base_url, questions(12), tmp_path, concurrency=6)
        log = server.generations
    told: dict[str, Any] = {}
    for entry in log:
        if entry["request"].get("max_tokens") == LIMIT:
            choice = json.loads(entry["response"])["choices"][0]
            told[entry["request"]["messages"][-1]["content"]] = choice
    requests = record["requests"]
    assert requests["row_id"] == [f"row-{at}" for at in range(12)]
    for at in range(12):
        choice = told[f"Question {at} is asked."]
        assert requests["output_tokens"][at] == choice["meta_info"]["completion_tokens"]
        assert requests["verify_steps"][at] == choice["meta_info"].get("spec_verify_ct")
        assert requests["correct_drafts"][at] == choice["meta_info"].get("spec_num_correct_drafts")
        assert requests["ttft"][at] == choice["meta_info"]["first_token_latency"]
    for row in rows:
        choice = told[row["messages"][-1]["content"]]
        (turn,) = row["turns"]
        assert (turn["text"], turn["output_ids"]) == (choice["message"]["content"], choice["response_token_ids"])


def test_a_server_without_verification_steps_has_no_acceptance_and_the_record_says_why(tmp_path: Path):
    with ScriptedServer() as server:
        metrics = measure(server.base_url, questions(4), tmp_path)[0]["metrics"]
    names = ("acceptance_length", "acceptance_length_decode", "acceptance_rate", "spec_verify_ct")
    assert [metrics[name] for name in names] == [None] * 4
    assert metrics["reasons"]["acceptance_length"] == "the server reports no verification steps"


def test_answers_that_were_never_verified_do_not_count_as_an_acceptance_of_one(tmp_path: Path):
    script = Script(speculation=Speculation(), replies=Replies(tokens=(1, 1)))
    with ScriptedServer(script) as server:
        record, _ = measure(server.base_url, questions(4), tmp_path)
    assert record["metrics"]["acceptance_length"] is None
    assert record["requests"]["verify_steps"] == [None] * 4
    assert record["metrics"]["output_tokens"] == 4


def test_the_measured_requests_are_those_of_the_rounds_and_no_others(tmp_path: Path):
    with ScriptedServer() as server:
        asked = benchmark(questions(5))
        record, _ = measure(server.base_url, asked, tmp_path, rounds=3)
        bodies = measured_bodies(server.generations)
    contents = Counter(body["messages"][0]["content"] for body in bodies)
    assert contents == Counter({f"Question {at} is asked.": 3 for at in range(5)})
    assert record["metrics"]["requests"] == 15

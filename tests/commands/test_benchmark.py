"""``specforge benchmark`` against a scripted server: what it sends, records and prints."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.commands.benchmarking import Benchmarking
from tests.support.scripted import Answer, Pace, Replies, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

SPECULATING = Script(speculation=Speculation())
CHAT = "/v1/chat/completions"
SAMPLES = 20  # built-in gsm8k rows


def asked(server: ScriptedServer, record: dict[str, Any]) -> list[dict[str, Any]]:
    """The measured requests alone: the probe's and the warm-up's come first."""
    return server.generations[-record["metrics"]["requests"] :]


def told(server: ScriptedServer, record: dict[str, Any], name: str) -> int:
    """Σ of a field of ``meta_info``, over the answers that the server sent in the window."""
    answers = [json.loads(entry["response"]) for entry in asked(server, record)]
    return sum(answer["choices"][0]["meta_info"].get(name, 0) for answer in answers)


def test_the_record_has_a_cells_shape_and_the_servers_own_counts(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 12, "--concurrency", 4)
        record = done.record
        tokens, steps = told(server, record, "completion_tokens"), told(server, record, "spec_verify_ct")
    assert done.status == 0
    assert list(record) == [
        *("format", "config", "benchmark", "metrics", "requests", "environment", "status", "reason", "rows")
    ]
    assert record["config"] == {
        "batch_size": 4,
        "num_steps": 3,
        "topk": 1,
        "num_draft_tokens": 4,
        "algorithm": "EAGLE3",
        "concurrency": 4,
        "request_rate": None,
        "arrivals": None,
    }
    metrics = record["metrics"]
    assert metrics["output_tokens"] == tokens
    assert metrics["spec_verify_ct"] == steps
    assert metrics["acceptance_length"] == pytest.approx(tokens / steps)
    assert metrics["output_throughput"] == pytest.approx(tokens / metrics["duration"])
    assert metrics["request_throughput"] == pytest.approx(12 / metrics["duration"])
    assert record["environment"]["server"]["version"] == "0.5.23"
    assert record["environment"]["client"]["asked_concurrency"] == 4
    assert {row["row_id"] for row in done.rows()} == set(record["benchmark"]["row_ids"])


def test_nothing_is_scored_and_the_reason_is_said(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        metrics = benchmark_command(server.base_url, "--num-prompts", 4).record["metrics"]
    assert metrics["accuracy"] is None
    assert metrics["reasons"]["accuracy"] == "specforge benchmark measures speed and acceptance; it scores nothing"


def test_generated_code_is_not_executed(benchmark_command: Benchmarking, tmp_path: Any) -> None:
    trace = tmp_path / "executed"
    code = f"```python\nopen({str(trace)!r}, 'w').close()\n```"
    script = Script(replies=Replies(answers=(Answer("", code),)))
    with ScriptedServer(script) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 4, dataset=("humaneval", "--samples"))
    assert done.status == 0
    assert all(code.strip() in turn["text"] for row in done.rows() for turn in row["turns"])
    assert not trace.exists()


@pytest.mark.parametrize(
    "name", ["gsm8k", "math500", "humaneval", "mbpp", "mtbench", "mt-bench", "mmlu", "ceval", "gpqa", "aime"]
)
def test_every_dataset_is_measured(benchmark_command: Benchmarking, name: str) -> None:
    with ScriptedServer(SPECULATING) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 4, dataset=(name, "--samples"))
    assert done.status == 0
    assert done.record["status"] == "ok"
    assert len(done.rows()) == 4


def test_mt_bench_sends_both_turns(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 3, dataset=("mt-bench", "--samples"))
        turns = Counter(len(entry["request"]["messages"]) for entry in asked(server, done.record))
    assert turns == {1: 3, 3: 3}
    assert [len(row["turns"]) for row in done.rows()] == [2, 2, 2]


def test_every_request_states_what_the_options_say(benchmark_command: Benchmarking) -> None:
    flags = ["--temperature", 0.5, "--top-p", 0.9, "--top-k", 20, "--seed", 7, "--max-new-tokens", 33]
    flags += ["--enable-thinking", "--extra-body", '{"ignore_eos": true}', "--header", "X-Run: 1"]
    with ScriptedServer() as server:
        record = benchmark_command(server.base_url, "--num-prompts", 3, *flags).record
        requests = [entry["request"] for entry in asked(server, record)]
    for request in requests:
        stated = {name: request[name] for name in ("temperature", "top_p", "top_k", "seed", "max_tokens", "ignore_eos")}
        assert stated == {
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 20,
            "seed": 7,
            "max_tokens": 33,
            "ignore_eos": True,
        }
        assert request["chat_template_kwargs"] == {"enable_thinking": True}


def test_the_defaults_are_greedy_without_top_k_and_2048_tokens(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        record = benchmark_command(server.base_url, "--num-prompts", 1).record
        (request,) = (entry["request"] for entry in asked(server, record))
    assert (request["temperature"], request["top_p"], request["top_k"], request["max_tokens"]) == (0.0, 1.0, -1, 2048)


def test_the_cache_is_flushed_before_and_after_a_warm_up_of_prompts_of_its_own(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        record = benchmark_command(server.base_url, "--num-prompts", 6, "--concurrency", 3).record
        paths = [entry["path"] for entry in server.requests if entry["path"] in ("/flush_cache", CHAT)]
        warmup = server.generations[-9:-6]
        measured = {json.dumps(entry["request"]["messages"]) for entry in asked(server, record)}
    assert paths[-11:] == ["/flush_cache", *[CHAT] * 3, "/flush_cache", *[CHAT] * 6]
    assert not measured & {json.dumps(entry["request"]["messages"]) for entry in warmup}


def test_prompts_beyond_the_datasets_size_are_drawn_again_in_a_new_order(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, "--num-prompts", 50, "--concurrency", 5)
    ids = done.record["benchmark"]["row_ids"]
    first, second, third = ids[:SAMPLES], ids[SAMPLES : 2 * SAMPLES], ids[2 * SAMPLES :]
    assert len(set(ids)) == 50
    assert [name.removesuffix("~2") for name in second] != first
    assert sorted(name.removesuffix("~2") for name in second) == sorted(first)
    assert {name.removesuffix("~3") for name in third} < set(first)
    assert done.record["benchmark"]["repeats"] == 30
    assert "note: 30 of 50 prompts are repeats of 20" in done.out


def test_the_same_seed_repeats_the_same_order(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        drawn = [
            benchmark_command(server.base_url, "--num-prompts", 45, "--seed", seed).record["benchmark"]["row_ids"]
            for seed in (3, 3, 4)
        ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_max_samples_bounds_the_different_prompts(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        alone = benchmark_command(server.base_url, "--max-samples", 5).record["benchmark"]
        again = benchmark_command(server.base_url, "--max-samples", 5, "--num-prompts", 12).record["benchmark"]
    assert (alone["num_prompts"], alone["repeats"]) == (5, 0)
    assert (again["num_prompts"], again["repeats"]) == (12, 7)
    assert len(set(again["hashes"]["static_turns"])) == 5


def test_a_dataset_path_alone_is_the_named_datasets(benchmark_command: Benchmarking, tmp_path: Any) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"question": "What is 2 + 2?", "answer": "#### 4"}\n', encoding="utf-8")
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, dataset=("gsm8k", "--dataset-path", str(path)))
    assert done.record["benchmark"]["source"]["location"] == str(path)
    assert len(done.rows()) == 1


def test_rounds_are_kept_apart_and_summed(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(SPECULATING) as server:
        metrics = benchmark_command(server.base_url, "--num-prompts", 4, "--rounds", 3).record["metrics"]
    assert len(metrics["rounds"]) == 3
    assert metrics["requests"] == 12
    assert metrics["duration"] == pytest.approx(sum(one["duration"] for one in metrics["rounds"]))


def test_a_stream_measures_first_tokens_and_the_gaps_of_chunks(benchmark_command: Benchmarking) -> None:
    script = Script(speculation=Speculation(), pace=Pace(per_request=0.05, per_step=0.01))
    with ScriptedServer(script) as server:
        record = benchmark_command(server.base_url, "--num-prompts", 6, "--concurrency", 3, "--stream").record
    metrics = record["metrics"]
    assert metrics["ttft"]["source"] == metrics["tpot"]["source"] == "stream"
    assert metrics["ttft"]["p50"] >= 0.05
    assert metrics["itl"]["mean"] > 0
    assert metrics["acceptance_length"] is not None
    assert record["environment"]["streamed"]


def test_without_a_stream_the_servers_own_first_token_times_are_used(benchmark_command: Benchmarking) -> None:
    script = Script(pace=Pace(per_request=0.05), wire=Wire(metrics=True))
    with ScriptedServer(script) as server:
        metrics = benchmark_command(server.base_url, "--num-prompts", 4).record["metrics"]
    assert metrics["ttft"]["source"] == "server"
    assert metrics["ttft"]["p50"] == pytest.approx(0.05)


def test_a_server_that_reports_no_speculation_has_null_acceptance_with_the_reason(
    benchmark_command: Benchmarking,
) -> None:
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, "--num-prompts", 4)
    assert done.record["metrics"]["acceptance_length"] is None
    assert "acceptance length      - (the server reports no verification steps)" in done.out


def test_goodput_counts_the_requests_that_keep_every_limit(benchmark_command: Benchmarking) -> None:
    slow = Script(pace=Pace(per_request=0.1))
    with ScriptedServer(slow) as server:
        kept, missed = (
            benchmark_command(server.base_url, "--num-prompts", 4, "--stream", "--goodput", *limits).record["metrics"]
            for limits in (("ttft:20s", "latency:30s"), ("ttft:50ms", "tpot:20s"))
        )
    good, bad = kept["goodput"], missed["goodput"]
    assert (good["requests"], good["share"], good["limits"]) == (4, 1.0, {"ttft": 20.0, "latency": 30.0})
    assert good["per_second"] == pytest.approx(4 / kept["duration"])
    assert (bad["requests"], bad["share_by_limit"]) == (0, {"ttft": 0.0, "tpot": 1.0})


def test_goodput_of_a_time_that_nobody_told_is_null_with_the_reason(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(wire=Wire(metrics=False))) as server:
        metrics = benchmark_command(server.base_url, "--num-prompts", 4, "--goodput", "ttft:1s").record["metrics"]
    assert metrics["goodput"] is None
    assert "--stream measures it" in metrics["reasons"]["goodput"]


def test_an_open_loop_records_its_rate_and_what_was_achieved(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        record = benchmark_command(
            server.base_url, "--num-prompts", 12, "--request-rate", 40, "--arrivals", "constant"
        ).record
    assert record["config"]["request_rate"] == 40
    assert record["config"]["arrivals"] == "constant"
    assert record["config"]["batch_size"] is None
    client = record["environment"]["client"]
    assert client["asked_request_rate"] == pytest.approx(40)
    assert 0 < client["achieved_request_rate"] < 80


def test_a_sweep_has_a_row_and_a_record_a_level_in_rising_order(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(pace=Pace(per_request=0.02))) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 16, "--concurrency", 4, 1, 2)
    document = done.record
    assert document["sweep"]["over"] == "concurrency"
    assert document["sweep"]["values"] == [1, 2, 4]
    assert [cell["config"]["concurrency"] for cell in document["cells"]] == [1, 2, 4]
    assert [len(done.rows(f"record.concurrency-{level}.rows.jsonl")) for level in (1, 2, 4)] == [16, 16, 16]
    lines = done.out.splitlines()
    assert lines[1].split()[:4] == ["load", "tok/s", "req/s", "latency"]
    assert [line.split()[0] for line in lines[2:5]] == ["1", "2", "4"]
    marked = document["sweep"]["stops_growing_at"]
    marks = [line.split()[0] for line in lines[2:5] if line.endswith("<- throughput stops growing")]
    assert marks == ([] if marked is None else [str(marked)])


def test_a_sweep_over_rates_has_a_row_a_rate(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, "--num-prompts", 8, "--request-rate", 50, 100)
    assert done.record["sweep"]["over"] == "request_rate"
    assert [line.split()[0] for line in done.out.splitlines()[2:4]] == ["50", "100"]


def test_more_in_flight_than_the_server_runs_at_once_is_warned_of(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(wire=Wire(max_running_requests=4))) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 8, "--concurrency", 8)
    assert "warning: 8,0,0,0: 8 requests in flight are more than the 4 that the server runs at once" in done.out


def test_another_model_than_the_one_named_is_warned_of(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(model="org/served")) as server:
        same = benchmark_command(server.base_url, "--num-prompts", 4, "--model", "/models/served")
        other = benchmark_command(server.base_url, "--num-prompts", 4, "--model", "org/expected")
    assert "--model" not in same.out
    assert "warning: --model org/expected: the server says that it serves org/served" in other.out


def test_the_key_goes_to_the_server_and_not_into_the_record(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(wire=Wire(api_key="sesame-42"))) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 2, "--api-key", "sesame-42")
    assert done.status == 0
    assert "sesame-42" not in done.path.read_text(encoding="utf-8")


def test_an_earlier_result_is_replaced_together_with_its_rows(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        benchmark_command(server.base_url, "--num-prompts", 9)
        done = benchmark_command(server.base_url, "--num-prompts", 3)
    assert len(done.rows()) == done.record["benchmark"]["num_prompts"] == 3
    assert sorted(path.name for path in done.path.parent.iterdir()) == ["record.json", "record.rows.jsonl"]

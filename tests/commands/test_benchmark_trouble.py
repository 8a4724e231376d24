"""``specforge benchmark`` where something is wrong: one clear line, before any request where it can be known."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.commands.benchmarking import Benchmarking
from tests.support.processes import ROOT, free_port, running, wait_until
from tests.support.scripted import Fault, Pace, Script, Start, Wire
from tests.support.scripted_server import ScriptedServer

PREFIX = "specforge benchmark: "


@pytest.mark.parametrize(
    "flags, line",
    [
        (["--num-prompts", 0], "--num-prompts: 0 is not at least 1"),
        (["--num-prompts", -3], "--num-prompts: -3 is not at least 1"),
        (["--max-samples", 0], "--max-samples: 0 is not at least 1"),
        (["--concurrency", 0], "--concurrency: 0 is not at least 1"),
        (["--concurrency", 4, -1], "--concurrency: -1 is not at least 1"),
        (["--rounds", 0], "--rounds: 0 is not at least 1"),
        (["--client-processes", 0], "--client-processes: 0 is not at least 1"),
        (["--max-new-tokens", 0], "--max-new-tokens: 0 is not at least 1"),
        (["--max-failed", -1], "--max-failed: -1 is not at least 0"),
        (["--timeout-seconds", 0], "--timeout-seconds: 0 is no finite number above 0"),
        (["--request-rate", 0], "--request-rate: 0 is not a number of requests a second above 0"),
        (["--request-rate", "nan"], "--request-rate: nan is not a number of requests a second above 0"),
        (
            ["--concurrency", 1, 2, "--request-rate", 1],
            "--concurrency: several values make a sweep, and so does --request-rate; sweep one of them",
        ),
        (["--temperature", -1], "--temperature: -1 is below 0"),
        (["--top-p", 1.5], "--top-p: 1.5 is not above 0 and at most 1"),
        (["--top-k", 0], "--top-k: 0 is neither above 0 nor -1 (off)"),
        (["--extra-body", "[1]"], "--extra-body: '[1]' is not a JSON object, such as '{\"ignore_eos\": true}'"),
        (
            ["--goodput", "ttft:500"],
            "--goodput: 'ttft:500' is not a limit; expected NAME:TIME with ms or s, such as ttft:500ms, "
            "of ttft, tpot, latency",
        ),
        (["--goodput", "ttft:1s", "ttft:2s"], "--goodput: ttft has two limits"),
        (["--header", "no colon"], "--header: 'no colon' is not a header; expected 'Name: value'"),
        (["--dataset-path", "/no/such/file"], None),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_a_wrong_option_is_one_line_and_no_request(
    benchmark_command: Benchmarking, flags: list[object], line: str | None
) -> None:
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, *flags)
        assert server.requests == []
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith(PREFIX + str(flags[0]))
    if line is not None:
        assert done.err == f"{PREFIX}{line}\n"


def test_an_unknown_dataset_is_named_with_the_flag_and_the_nearest_name(benchmark_command: Benchmarking) -> None:
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, dataset=("gsm9k",))
        assert server.requests == []
    assert done.status == 2
    assert done.err.startswith(f"{PREFIX}--dataset: unknown dataset 'gsm9k'; did you mean gsm8k?")


@pytest.mark.parametrize("place", ["a folder", "below a file"])
def test_an_unwritable_output_path_is_known_before_any_request(
    benchmark_command: Benchmarking, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path if place == "a folder" else tmp_path / "file" / "record.json"
    with ScriptedServer() as server:
        done = benchmark_command(server.base_url, "--output-json", path)
        assert server.requests == []
    assert done.status == 2
    assert done.err.startswith(f"{PREFIX}--output-json: {str(path)!r} can't be written: ")


def test_no_server_there_is_said_in_one_line(benchmark_command: Benchmarking) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = benchmark_command(url)
    assert done.status == 2
    assert done.err == (
        f"{PREFIX}{url} does not answer as a server that is ready ([Errno {errno.ECONNREFUSED}] Connection refused); "
        "expected a running SGLang there "
        "(--base-url, or --host and --port)\n"
    )


def test_a_server_that_is_no_sglang_is_said_in_one_line(benchmark_command: Benchmarking) -> None:
    nothing = ("/v1/chat/completions", "/generate", "/v1/tokenize", "/server_info", "/get_server_info")
    with ScriptedServer(Script(wire=Wire(missing=nothing))) as server:
        done = benchmark_command(server.base_url)
    assert done.status == 2
    assert done.err == (
        f"{PREFIX}{server.base_url} is no SGLang server: /v1/chat/completions answered 404 without a completion\n"
    )


def test_a_server_that_still_starts_is_said_in_one_line(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(start=Start(ready_after=3600))) as server:
        done = benchmark_command(server.base_url)
    assert done.status == 2
    assert done.err.startswith(
        f"{PREFIX}{server.base_url} does not answer as a server that is ready (/health answered 503); expected "
    )
    assert done.err.count("\n") == 1


def test_a_missing_key_is_said_in_one_line(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(wire=Wire(api_key="sesame"))) as server:
        done = benchmark_command(server.base_url)
    assert done.status == 2
    assert done.err.endswith("answered 401: the server wants a key (--api-key)\n")
    assert done.err.count("\n") == 1


def test_a_server_that_dies_half_way_leaves_a_partial_result_that_says_so(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(faults=(Fault("exit", after=8),))) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 12, "--concurrency", 1)
    assert done.status == 2
    record = done.record
    assert record["status"] == "partial"
    assert f"the server at {server.base_url} is gone" in record["reason"]
    answered = [row for row in done.rows() if row["status"] == "ok"]
    assert 0 < record["metrics"]["requests"] == len(answered) < 12
    assert record["metrics"]["output_throughput"] is None
    assert record["metrics"]["reasons"]["output_throughput"] == "no round was measured to its end"
    assert done.err == f"{PREFIX}{record['reason']}\n"


def test_a_sweep_whose_server_dies_keeps_the_levels_before(benchmark_command: Benchmarking) -> None:
    with ScriptedServer(Script(faults=(Fault("exit", after=14),))) as server:
        done = benchmark_command(server.base_url, "--num-prompts", 8, "--concurrency", 1, 2, 4)
    assert done.status == 2
    assert [cell["status"] for cell in done.record["cells"]] == ["ok", "partial"]


def test_failed_requests_beyond_the_allowed_fail_the_result_after_it_is_kept(benchmark_command: Benchmarking) -> None:
    refused = Fault("status", status=422, requests=(4, 12))
    with ScriptedServer(Script(faults=(refused,))) as server:
        strict = benchmark_command(server.base_url, "--num-prompts", 8)
        record = strict.record
    with ScriptedServer(Script(faults=(refused,))) as server:
        lenient = benchmark_command(server.base_url, "--num-prompts", 8, "--max-failed", 1)
    assert (strict.status, lenient.status) == (2, 0)
    assert record["status"] == "failed"
    assert record["reason"].startswith("1 of 8 requests failed (--max-failed 0); the first: ")
    assert record["metrics"]["output_tokens"] > 0
    assert lenient.record["metrics"]["output_throughput"] is None  # a spoilt round says nothing about speed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_run_keeps_what_was_measured_and_aborts_the_rest(
    tmp_path: Path, number: signal.Signals, processes: int
) -> None:
    path = tmp_path / "record.json"
    stuck = Fault("hang", containing="", after=9)
    with ScriptedServer(Script(pace=Pace(per_request=0.01), faults=(stuck,))) as server:
        command = [sys.executable, "-m", "specforge.cli", "benchmark", "--dataset", "gsm8k", "--samples"]
        command += ["--base-url", server.base_url, "--concurrency", "2", "--output-json", str(path)]
        command += ["--client-processes", str(processes)]
        with running(command, cwd=ROOT, log=tmp_path / "log") as program:
            wait_until(lambda: len(server.generations) >= 9 and server.max_in_flight == 2, within=60)
            os.killpg(program.pid, number) if number is signal.SIGINT else program.send(number)
            assert program.wait(within=60) == 130
        aborted = {entry["request"]["rid"] for entry in server.requests if entry["path"] == "/abort_request"}
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["status"], record["reason"]) == ("partial", "interrupted")
    rows = path.with_name("record.rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert 0 < record["metrics"]["requests"] == len(rows) < 20
    assert len(aborted) >= 1

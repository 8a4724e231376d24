"""The server under trouble, and what is the engine's own."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from tests.engine import tiny
from tests.engine.conftest import EngineFactory, Models, Served
from tests.engine.contract import CHAT, GREEDY, LONG, PROMPT, events, flush, generate, post
from tests.support.processes import ROOT, free_port, wait_until


@pytest.fixture
def served(engine: EngineFactory, models: Models) -> Served:
    return engine(models.target, "--max-running-requests", "3", *models.draft_flags("EAGLE3", "3,2,6"))


def state(url: str) -> dict[str, Any]:
    return requests.get(f"{url}/server_info", timeout=30).json()["internal_states"][0]


def idle(url: str) -> bool:
    now = state(url)
    return now["num_running_reqs"] == now["num_waiting_reqs"] == 0


@pytest.mark.parametrize("bad", [[300], [-1], ["a"], [True], [[5, 999]]], ids=str)
def test_token_ids_outside_the_vocabulary_are_refused(bad: list[Any], served: Served) -> None:
    response = post(served.url, "/generate", {"input_ids": bad, "sampling_params": GREEDY})
    assert response.status_code == 400
    assert "input_ids must be in [0, 299]" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"sampling_params": ["x"]},
        {"sampling_params": [{}, {}]},
        {"rid": [7]},
        {"rid": 7},
        {"stream": "yes"},
        {"text": [5], "input_ids": None},
        {"return_logprob": True},
        {"return_logprob": [True]},
    ],
    ids=str,
)
def test_fields_of_other_types_are_refused(body: dict[str, Any], served: Served) -> None:
    response = post(served.url, "/generate", {"input_ids": PROMPT, **body})
    assert response.status_code == 400, response.text
    answer = response.json()
    assert answer.get("message") or answer["error"]["message"]


@pytest.mark.parametrize(
    "path, body",
    [
        ("/v1/chat/completions", {"messages": "hello"}),
        ("/v1/chat/completions", {"messages": ["hello"]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 5}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
        ("/v1/chat/completions", {**CHAT, "stop": 5}),
        ("/v1/chat/completions", {**CHAT, "seed": "x"}),
        ("/v1/chat/completions", {**CHAT, "max_tokens": "many"}),
        ("/v1/chat/completions", {**CHAT, "n": 1000}),
        ("/v1/chat/completions", {**CHAT, "tools": [{"type": "function"}]}),
        ("/v1/chat/completions", {**CHAT, "response_format": {"type": "json_object"}}),
        ("/v1/completions", {"prompt": ["a", "b"]}),
        ("/v1/completions", {}),
        ("/v1/tokenize", {"prompt": 5}),
        ("/v1/tokenize", {"prompt": "a", "messages": []}),
        ("/v1/detokenize", {"tokens": [9999]}),
        ("/v1/detokenize", {"tokens": "a"}),
        ("/abort_request", [1]),
        ("/flush_cache?timeout=soon", {}),
    ],
    ids=str,
)
def test_every_endpoint_answers_nonsense_with_a_400(path: str, body: Any, served: Served) -> None:
    response = post(served.url, path, body)
    assert response.status_code == 400, response.text
    assert response.json()["message"]


def test_an_empty_prompt_is_refused(served: Served) -> None:
    assert post(served.url, "/generate", {"text": "", "sampling_params": GREEDY}).status_code == 400


def test_of_several_prompts_none_runs_if_one_is_refused(served: Served) -> None:
    response = post(served.url, "/generate", {"input_ids": [PROMPT, [999]], "sampling_params": LONG})
    assert response.status_code == 400
    assert idle(served.url)


@pytest.mark.parametrize("path", ["/generate", "/v1/chat/completions"])
def test_a_client_that_hangs_up_frees_its_slot(path: str, served: Served) -> None:
    body = {"input_ids": PROMPT, "sampling_params": LONG} if path == "/generate" else {**CHAT, "max_tokens": 1900}
    streaming = post(served.url, path, {**body, "stream": True}, stream=True)
    next(streaming.iter_lines())
    streaming.close()
    wait_until(lambda: idle(served.url), within=20, what="the stream's slot to be free")


def test_a_client_that_hangs_up_before_its_answer_frees_its_slot(served: Served) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    body = json.dumps({"input_ids": PROMPT, "sampling_params": LONG}).encode()
    head = f"POST /generate HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head + body)
        wait_until(lambda: not idle(served.url), within=20, what="the request to run")
    wait_until(lambda: idle(served.url), within=20, what="its slot to be free")


def test_a_hang_up_ends_no_request_whose_id_only_begins_alike(served: Served) -> None:
    def started(rid: str, new_tokens: int) -> tuple[requests.Response, Iterator[bytes]]:
        params = {**GREEDY, "max_new_tokens": new_tokens}
        body = {"input_ids": PROMPT, "sampling_params": params, "stream": True, "rid": rid}
        response = post(served.url, "/generate", body, stream=True)
        lines = response.iter_lines()
        next(lines)
        return response, lines

    (_, others), (hung, _) = started("r10", 600), started("r1", 2000)
    hung.close()
    last = [line for line in others if line][-2]
    assert json.loads(last.removeprefix(b"data: "))["meta_info"]["finish_reason"] == {"type": "length", "length": 600}


def test_a_request_that_waits_can_be_aborted(served: Served) -> None:
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(generate, served.url, rid=f"run{i}.", sampling_params=LONG) for i in range(3)]
        wait_until(lambda: state(served.url)["num_running_reqs"] == 3, within=20, what="three to run")
        waiting = pool.submit(generate, served.url, rid="wait", sampling_params=LONG)
        wait_until(lambda: state(served.url)["num_waiting_reqs"] == 1, within=20, what="one to wait")
        post(served.url, "/abort_request", {"rid": "wait"})
        reason = waiting.result()["meta_info"]["finish_reason"]
        assert (reason["type"], reason["message"]) == ("abort", "Abort in waiting queue")
        post(served.url, "/abort_request", {"abort_all": True})
        assert {answer.result()["meta_info"]["finish_reason"]["type"] for answer in running} == {"abort"}


def test_more_requests_than_slots_all_get_their_own_answer(served: Served) -> None:
    prompts = tiny.prompts(12, seed=5)
    alone = [generate(served.url, input_ids=prompt)["output_ids"] for prompt in prompts]
    flush(served.url)
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda prompt: generate(served.url, input_ids=prompt)["output_ids"], prompts))
    assert together == alone


def test_the_server_answers_while_the_engine_computes(served: Served) -> None:
    with ThreadPoolExecutor(3) as pool:
        for number in range(3):
            pool.submit(generate, served.url, rid=f"load{number}", sampling_params=LONG)
        wait_until(lambda: not idle(served.url), within=20, what="a request to run")
        for _ in range(5):
            assert requests.get(f"{served.url}/ready", timeout=5).status_code == 200
        assert requests.get(f"{served.url}/health", timeout=5).status_code == 200
        post(served.url, "/abort_request", {"abort_all": True})


def test_a_seed_makes_sampled_answers_repeat(served: Served) -> None:
    def sampled(seed: int) -> list[int]:
        params = {**GREEDY, "temperature": 1.0, "sampling_seed": seed}
        return generate(served.url, sampling_params=params)["output_ids"]

    assert sampled(5) == sampled(5)
    assert sampled(5) != sampled(6)


def test_a_stream_of_several_carries_their_indices(served: Served) -> None:
    body = {"input_ids": [PROMPT, PROMPT[:3]], "sampling_params": GREEDY, "stream": True}
    chunks = list(events(post(served.url, "/generate", body, stream=True)))
    finished = {chunk["index"]: chunk for chunk in chunks if chunk["meta_info"]["finish_reason"]}
    assert {index: chunk["meta_info"]["prompt_tokens"] for index, chunk in finished.items()} == {0: 4, 1: 3}


def test_content_in_parts_is_one_text(served: Served) -> None:
    parts = [{"type": "text", "text": "to measure"}, {"type": "text", "text": "is to know"}]
    joined = post(served.url, "/v1/chat/completions", {**CHAT, "messages": [{"role": "user", "content": parts}]})
    whole = post(served.url, "/v1/chat/completions", CHAT)
    assert joined.json()["usage"]["prompt_tokens"] == whole.json()["usage"]["prompt_tokens"]


def test_detokenize_undoes_tokenize(served: Served) -> None:
    tokens = post(served.url, "/v1/tokenize", {"prompt": "numbers count"}).json()["tokens"]
    assert post(served.url, "/v1/detokenize", {"tokens": tokens}).json() == {"text": "numbers count"}


def test_a_key_is_asked_for_everywhere_but_at_the_probes(engine: EngineFactory, models: Models) -> None:
    url = engine(models.target, "--api-key", "secret").url
    for path in ("/ready", "/health", "/health_generate"):
        assert requests.get(url + path, timeout=30).status_code == 200
    for path in ("/server_info", "/v1/models", "/flush_cache"):
        assert requests.get(url + path, timeout=30).status_code == 401
    headers = {"Authorization": "Bearer secret"}
    info = requests.get(f"{url}/server_info", headers=headers, timeout=30)
    assert info.status_code == 200
    assert info.json()["api_key"] == "<redacted>"
    assert "--api-key" in info.json()["launch_command"]
    assert "secret" not in info.text


def test_chat_parameters_left_out_come_from_the_generation_config(
    engine: EngineFactory, models: Models, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("greedy")
    for file in models.target.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "generation_config.json").write_text(json.dumps({"temperature": 0.0, "eos_token_id": [1]}))
    url = engine(folder).url
    body = {key: value for key, value in CHAT.items() if key != "temperature"}
    texts = {post(url, "/v1/chat/completions", body).json()["choices"][0]["message"]["content"] for _ in range(3)}
    assert texts == {post(url, "/v1/chat/completions", CHAT).json()["choices"][0]["message"]["content"]}


def run_to_the_end(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "specforge.engine", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["--model-path", "nowhere"], "--model-path: expected a model folder, found nothing at nowhere"),
        (["--model-path", "nowhere", "--speculative-algorithm", "EAGLE3"], "--speculative-draft-model-path"),
        (["--model-path", "tests"], "config.json: expected a JSON file, found none"),
        (["--bogus"], "--model-path"),
    ],
)
def test_wrong_use_ends_with_2_and_one_line(arguments: list[str], reason: str) -> None:
    ended = run_to_the_end(*arguments)
    assert ended.returncode == 2
    assert re.search(f"error: .*{re.escape(reason)}", ended.stderr.splitlines()[-1])
    assert "Traceback" not in ended.stderr


def test_a_taken_port_ends_with_2_and_names_the_flag(models: Models) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = run_to_the_end("--model-path", str(models.target), "--port", port)
    assert ended.returncode == 2
    assert f"--port: can't listen on 127.0.0.1:{port}" in ended.stderr


def test_sigterm_ends_it_at_once_whatever_runs(models: Models) -> None:
    port = free_port()
    command = [sys.executable, "-m", "specforge.engine", "--model-path", str(models.target), "--port", str(port)]
    program = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        try:
            return requests.get(f"{url}/ready", timeout=5).ok
        except requests.ConnectionError:
            return False

    try:
        wait_until(ready, within=60, what="the engine to be ready")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(generate, url, sampling_params=LONG)
            wait_until(lambda: not idle(url), within=20, what="the request to run")
            program.terminate()
            assert program.wait(30) == 0
            assert answer.result()["meta_info"]["finish_reason"]["type"] == "abort"
    finally:
        program.kill()
        program.wait()


@pytest.mark.slow
def test_two_thousand_mixed_requests_with_random_aborts_leak_nothing(engine: EngineFactory, models: Models) -> None:
    """Streams, lists, refusals, hang-ups and aborts; then nothing runs, and memory and the cache keep their bounds."""
    budget = 3000
    flags = ["--max-running-requests", "4", "--max-total-tokens", str(budget)]
    served = engine(models.target, *flags, *models.draft_flags("EAGLE3", "3,2,6"))
    flush(served.url)
    # The first requests grow the caches to their size.
    mixed(served.url, 300, seed=0)
    before = resident(served.program.pid)
    mixed(served.url, 1700, seed=1)
    wait_until(lambda: idle(served.url), within=60, what="the engine to be idle")
    assert resident(served.program.pid) < before + (40 << 20)
    assert state(served.url)["prefix_cache_tokens"] <= budget
    assert generate(served.url)["meta_info"]["completion_tokens"] == GREEDY["max_new_tokens"]
    flush(served.url)
    assert state(served.url)["prefix_cache_tokens"] == 0


def mixed(url: str, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    tasks = [(number, int(random.integers(6)), float(random.uniform(0, 0.05))) for number in range(count)]

    def one(task: tuple[int, int, float]) -> None:
        number, kind, pause = task
        rid = f"s{seed}n{number}."
        prompt = [int(token) for token in np.random.default_rng(number).integers(5, 290, 5 + number % 60)]
        params = {**GREEDY, "max_new_tokens": 1 + number % 50, "temperature": (number % 3) / 2}
        if kind == 0:
            generate(url, input_ids=[prompt, prompt[:4]], sampling_params=params)
        elif kind == 1:
            list(
                events(
                    post(
                        url, "/generate", {"input_ids": prompt, "sampling_params": params, "stream": True}, stream=True
                    )
                )
            )
        elif kind == 2:
            hung = post(url, "/generate", {"input_ids": prompt, "sampling_params": LONG, "stream": True}, stream=True)
            next(hung.iter_lines())
            hung.close()
        elif kind == 3:
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(generate, url, input_ids=prompt, rid=rid, sampling_params=LONG)
                # Aborted wherever it happens to be: not yet there, waiting, running.
                while not answer.done():
                    time.sleep(pause)
                    post(url, "/abort_request", {"rid": rid})
        elif kind == 4:
            assert post(url, "/generate", {"input_ids": [999], "sampling_params": params}).status_code == 400
        else:
            generate(url, input_ids=prompt, sampling_params={**params, "stop": ["e"], "n": 2})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, tasks))


def resident(pid: int) -> int:
    """Memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")

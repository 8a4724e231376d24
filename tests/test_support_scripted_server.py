"""The scripted server's wire, pace, faults and log."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.processes import Running, free_port, in_session, port_is_free, running, wait_until
from tests.support.scripted import Answer, Fault, Pace, Replies, Script, Speculation, Start, Wire
from tests.support.scripted.script import Scene, dump, load
from tests.support.scripted_server import ScriptedServer

PROGRAM = Path(__file__).parent / "support" / "scripted_server.py"
SPECULATIVE = Script(speculation=Speculation())


def ask(server: ScriptedServer, prompt: str = "What is 2 + 2?", timeout: float = 20.0, **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "max_tokens": 64, **fields}
    return requests.post(f"{server.base_url}/v1/chat/completions", json=body, timeout=timeout)


def events(response: requests.Response) -> list[Any]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


class TestTheWire:
    def test_chat_gives_meta_info_and_token_ids_only_when_asked(self) -> None:
        with ScriptedServer(SPECULATIVE) as server:
            bare = ask(server).json()["choices"][0]
            full = ask(server, return_meta_info=True, return_token_ids=True).json()
        choice = full["choices"][0]
        assert not {"meta_info", "response_token_ids", "prompt_token_ids"} & set(bare)
        assert bare["message"] == choice["message"]
        info = choice["meta_info"]
        assert len(choice["response_token_ids"]) == info["completion_tokens"] == full["usage"]["completion_tokens"]
        assert len(choice["prompt_token_ids"]) == info["prompt_tokens"] == full["usage"]["prompt_tokens"]
        assert sum(info["spec_correct_drafts_histogram"]) == info["spec_verify_ct"]
        assert info["spec_accept_length"] == info["completion_tokens"] / info["spec_verify_ct"]

    def test_a_server_without_speculation_reports_no_speculative_field(self) -> None:
        with ScriptedServer() as server:
            info = ask(server, return_meta_info=True).json()["choices"][0]["meta_info"]
        assert not [name for name in info if name.startswith("spec_")]

    @pytest.mark.parametrize("field", ["return_meta_info", "return_token_ids"])
    def test_what_a_stream_cannot_carry_is_refused(self, field: str) -> None:
        with ScriptedServer() as server:
            response = ask(server, stream=True, **{field: True})  # type: ignore[arg-type]
        assert response.status_code == 400
        assert field in response.json()["message"]

    def test_a_streamed_chat_says_what_the_whole_one_says(self) -> None:
        with ScriptedServer(SPECULATIVE) as server:
            whole = ask(server, return_meta_info=True).json()
            chunks = events(
                ask(server, stream=True, return_spec_tokens_details=True, stream_options={"include_usage": True})
            )
        text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        info = whole["choices"][0]["meta_info"]
        details = next(chunk["sglext"] for chunk in chunks if "sglext" in chunk)["spec_tokens_details"]
        assert text == whole["choices"][0]["message"]["content"]
        assert details["spec_verify_ct"] == info["spec_verify_ct"]
        assert chunks[-1]["usage"]["completion_tokens"] == info["completion_tokens"]

    def test_a_streamed_generation_is_cumulative_and_ends_with_the_whole_meta_info(self) -> None:
        with ScriptedServer(SPECULATIVE) as server:
            url = f"{server.base_url}/generate"
            whole = requests.post(url, json={"text": "hello"}, timeout=20).json()
            chunks = events(requests.post(url, json={"text": "hello", "stream": True}, timeout=20))
        assert all(
            later["output_ids"][: len(earlier["output_ids"])] == earlier["output_ids"]
            for earlier, later in itertools.pairwise(chunks)
        )
        assert [chunk["meta_info"].get("spec_verify_ct") for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert chunks[-1] == whole

    def test_a_list_in_gives_a_list_out_and_so_does_n(self) -> None:
        with ScriptedServer() as server:
            url = f"{server.base_url}/generate"
            batch = requests.post(url, json={"text": ["a", "b"]}, timeout=20).json()
            single = requests.post(url, json={"text": "a"}, timeout=20).json()
            samples = requests.post(url, json={"text": "a", "sampling_params": {"n": 2}}, timeout=20).json()
        assert batch[0]["output_ids"] == single["output_ids"]
        assert samples[0]["output_ids"] == single["output_ids"] != samples[1]["output_ids"]

    def test_a_tokenized_prompt_gets_the_answer_that_its_chat_gets(self) -> None:
        messages = [{"role": "user", "content": "How many apples?"}]
        with ScriptedServer() as server:
            ids = requests.post(f"{server.base_url}/v1/tokenize", json={"messages": messages}, timeout=20).json()[
                "tokens"
            ]
            chat = ask(server, "How many apples?", return_token_ids=True).json()["choices"][0]
            generated = requests.post(
                f"{server.base_url}/generate",
                json={"input_ids": ids, "sampling_params": {"max_new_tokens": 64}},
                timeout=20,
            ).json()
        assert chat["prompt_token_ids"] == ids
        assert generated["output_ids"] == chat["response_token_ids"]

    def test_more_tokens_than_the_context_holds_are_refused(self) -> None:
        with ScriptedServer(Script(wire=Wire(context_length=100))) as server:
            response = ask(server, max_tokens=99)
        assert response.status_code == 400
        assert "maximum context length" in response.json()["message"]

    def test_an_image_is_refused_by_a_text_model_and_taken_by_another(self) -> None:
        content = [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": "What is it?"}]
        with ScriptedServer() as blind, ScriptedServer(Script(wire=Wire(images=True))) as seeing:
            assert ask(blind, content).status_code == 400  # type: ignore[arg-type]
            assert ask(seeing, content).status_code == 200  # type: ignore[arg-type]

    def test_an_older_server_ignores_the_new_fields_and_has_the_older_names(self) -> None:
        silent = Script(speculation=Speculation(), wire=Wire(meta_info=False, token_ids=False))
        older = Script(speculation=Speculation(), wire=Wire(older_names=True))
        with ScriptedServer(silent) as server:
            choice = ask(server, return_meta_info=True, return_token_ids=True).json()["choices"][0]
            assert not {"meta_info", "response_token_ids"} & set(choice)
        with ScriptedServer(older) as server:
            info = ask(server, return_meta_info=True).json()["choices"][0]["meta_info"]
        assert {"spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"} < set(info)

    def test_a_refused_field_and_a_missing_path(self) -> None:
        wire = Wire(refuses=("return_token_ids",), missing=("/server_info",))
        with ScriptedServer(Script(wire=wire)) as server:
            assert ask(server, return_token_ids=True).status_code == 400
            assert ask(server).status_code == 200
            assert requests.get(f"{server.base_url}/server_info", timeout=20).status_code == 404
            assert requests.get(f"{server.base_url}/get_server_info", timeout=20).status_code == 200

    def test_a_key_is_wanted_by_all_but_the_liveness_paths(self) -> None:
        with ScriptedServer(Script(wire=Wire(api_key="k"))) as server:
            assert ask(server).status_code == 401
            for path in ("/ready", "/health"):
                assert requests.get(server.base_url + path, timeout=20).status_code == 200
            keyed = requests.get(f"{server.base_url}/server_info", headers={"Authorization": "Bearer k"}, timeout=20)
        assert keyed.status_code == 200

    def test_what_it_says_about_itself_can_be_wrong(self) -> None:
        wire = Wire(server_info={"model_path": "another", "speculative_num_steps": 9})
        with ScriptedServer(Script(speculation=Speculation(), wire=wire)) as server:
            info = requests.get(f"{server.base_url}/server_info", timeout=20).json()
            models = requests.get(f"{server.base_url}/v1/models", timeout=20).json()
        assert (info["model_path"], info["speculative_num_steps"]) == ("another", 9)
        assert models["data"][0]["id"] == "another"

    def test_a_prompt_seen_before_is_cached_until_the_flush(self) -> None:
        with ScriptedServer(Script(wire=Wire(prefix_cache=True))) as server:
            cached = [
                ask(server, return_meta_info=True).json()["choices"][0]["meta_info"]["cached_tokens"] for _ in range(2)
            ]
            requests.post(f"{server.base_url}/flush_cache", timeout=20)
            after = ask(server, return_meta_info=True).json()["choices"][0]["meta_info"]["cached_tokens"]
        assert cached[0] == 0 < cached[1]
        assert after == 0

    def test_reasoning_is_kept_apart_and_content_is_empty_when_cut_there(self) -> None:
        replies = Replies(answers=(Answer("", "It is four.", reasoning="two and two make"),))
        with ScriptedServer(Script(replies=replies)) as server:
            whole = ask(server).json()["choices"][0]["message"]
            cut = ask(server, max_tokens=2).json()["choices"][0]
        assert (whole["content"], whole["reasoning_content"]) == ("It is four.", "two and two make")
        assert (cut["message"]["content"], cut["finish_reason"]) == ("", "length")


class TestPaceAndFaults:
    def test_requests_wait_side_by_side(self) -> None:
        with ScriptedServer(Script(pace=Pace(per_request=1.0))) as server, ThreadPoolExecutor(8) as clients:
            started = time.monotonic()
            list(clients.map(lambda number: ask(server, f"q{number}"), range(8)))
            took = time.monotonic() - started
        assert took >= 1.0
        assert server.max_in_flight == 8

    def test_latencies_are_those_that_the_pace_implies(self) -> None:
        script = Script(speculation=Speculation(), pace=Pace(per_request=0.02, per_step=0.005))
        with ScriptedServer(script) as server:
            info = ask(server, return_meta_info=True).json()["choices"][0]["meta_info"]
        assert info["first_token_latency"] == 0.02
        assert info["e2e_latency"] == pytest.approx(0.02 + 0.005 * info["spec_verify_ct"])

    def test_the_first_flushes_are_refused(self) -> None:
        with ScriptedServer(Script(wire=Wire(flush_refusals=2))) as server:
            codes = [requests.post(f"{server.base_url}/flush_cache", timeout=20).status_code for _ in range(3)]
        assert codes == [400, 400, 200]

    def test_a_flush_is_refused_while_a_request_runs(self) -> None:
        with ScriptedServer(Script(faults=(Fault("hang"),))) as server, ThreadPoolExecutor(1) as client:
            hanging = client.submit(ask, server, timeout=1.0)
            wait_until(lambda: server.max_in_flight, within=10)
            assert requests.post(f"{server.base_url}/flush_cache", timeout=20).status_code == 400
            with pytest.raises(requests.Timeout):
                hanging.result()

    def test_a_status_meets_the_requests_that_it_names_and_no_other(self) -> None:
        faults = (Fault("status", status=503, retry_after=2, requests=(2,)), Fault("status", containing="apple"))
        with ScriptedServer(Script(faults=faults)) as server:
            answers = [ask(server, prompt) for prompt in ("a", "b", "c", "an apple", "d")]
        assert [answer.status_code for answer in answers] == [200, 503, 200, 500, 200]
        assert answers[1].headers["Retry-After"] == "2"

    def test_a_fault_strikes_as_often_as_it_says(self) -> None:
        with ScriptedServer(Script(faults=(Fault("status", times=2, after=1),))) as server:
            assert [ask(server).status_code for _ in range(5)] == [200, 500, 500, 200, 200]

    def test_a_malformed_body_is_no_json(self) -> None:
        with ScriptedServer(Script(faults=(Fault("malformed"),))) as server:
            response = ask(server)
        assert response.status_code == 200
        with pytest.raises(ValueError, match="char"):
            response.json()

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("what", ["drop", "refuse", "exit"])
    def test_the_connection_ends_without_an_answer(self, what: Any, stream: bool) -> None:
        with ScriptedServer(Script(faults=(Fault(what, requests=(1,)),))) as server:
            with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
                ask(server, stream=stream)
            if what != "exit":
                assert ask(server).status_code == 200

    def test_a_dying_server_is_gone(self) -> None:
        with ScriptedServer(Script(faults=(Fault("exit", status=3, requests=(2,)),))) as server:
            assert ask(server).status_code == 200
            with pytest.raises(requests.ConnectionError):
                ask(server)
            wait_until(lambda: port_is_free(server.port), within=10)
            assert server.exit_code == 3

    def test_an_aborted_request_ends_as_aborted(self) -> None:
        with ScriptedServer(Script(pace=Pace(per_request=60))) as server, ThreadPoolExecutor(1) as client:
            answer = client.submit(ask, server, rid="r1", return_meta_info=True)
            wait_until(lambda: server.max_in_flight, within=10)
            requests.post(f"{server.base_url}/abort_request", json={"rid": "r1"}, timeout=20)
            choice = answer.result().json()["choices"][0]
        assert choice["finish_reason"] == "abort"


class TestTheLog:
    def test_it_holds_the_raw_body_of_every_response(self, tmp_path: Path) -> None:
        with ScriptedServer(SPECULATIVE, log_path=tmp_path / "log.jsonl") as server:
            whole, streamed = ask(server, return_meta_info=True), ask(server, stream=True)
            requests.get(f"{server.base_url}/server_info", timeout=20)
            shown = requests.get(f"{server.base_url}/_script/log", timeout=20).json()
        written = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert [entry["response"] for entry in server.generations] == [whole.text, streamed.text]
        assert written == server.requests == shown["requests"]
        assert [entry["path"] for entry in written][-1] == "/server_info"


def test_a_script_survives_its_file(tmp_path: Path) -> None:
    scenes = [
        Scene(
            Script(
                speculation=Speculation(topk=2),
                replies=Replies(tokens=(1, 3), answers=(Answer("a", "b"),)),
                faults=(Fault("exit", requests=(1, 2)),),
                wire=Wire(server_info={"tp_size": 2}, api_key="k"),
                start=Start(exit_code=4),
            ),
            when={"--speculative-num-steps": "3"},
        ),
        Scene(Script()),
    ]
    assert load(dump(scenes, tmp_path / "script.json")) == scenes


def test_an_unknown_entry_of_a_script_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"pase": {}}')
    with pytest.raises(ValueError, match="pase"):
        load(tmp_path / "script.json")


class TestTheProgram:
    FLAGS = (
        *("--model-path", "M", "--host", "127.0.0.1", "--random-seed", "7", "--max-running-requests", "4"),
        *("--cuda-graph-max-bs-decode", "4", "--enable-metrics"),
    )
    DRAFTING = (
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "D", "--speculative-num-steps", "3"),
        *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    )

    @contextmanager
    def started(self, folder: Path, script: Any, *flags: str, ready: bool = True) -> Iterator[tuple[Running, str]]:
        port = free_port()
        command = [
            *(sys.executable, str(PROGRAM), "--script", str(dump(script, folder / "script.json"))),
            *("--script-log", str(folder / "log.jsonl"), *self.FLAGS, "--port", str(port), *flags),
        ]
        with running(command, cwd=folder) as program:
            if ready:
                program.wait_for_output("ready to roll", within=30)
            yield program, f"http://127.0.0.1:{port}"

    def test_it_is_what_its_flags_ask_for(self, tmp_path: Path) -> None:
        with self.started(tmp_path, Script(), *self.DRAFTING) as (program, url):
            info = requests.get(f"{url}/server_info", timeout=20).json()
        asked = {"model_path": "M", "random_seed": 7, "max_running_requests": 4, "speculative_algorithm": "EAGLE3"}
        assert {name: info[name] for name in asked} == asked
        assert (info["speculative_num_steps"], info["speculative_num_draft_tokens"]) == (3, 4)
        first = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
        assert (first["event"], first["pid"]) == ("start", program.pid)
        assert "--speculative-num-steps" in first["argv"]

    def test_the_first_scene_that_applies_is_played(self, tmp_path: Path) -> None:
        scenes = [Scene(Script(start=Start(exit_code=3)), when={"--speculative-num-steps": "3"}), Scene(Script())]
        with self.started(tmp_path, scenes, *self.DRAFTING, ready=False) as (program, _):
            assert program.wait(within=30) == 3
        with self.started(tmp_path, scenes) as (_, url):
            assert requests.get(f"{url}/health", timeout=20).status_code == 200

    def test_a_slow_start_answers_503_until_it_is_ready(self, tmp_path: Path) -> None:
        script = Script(start=Start(ready_after=2.0, log_lines=("Load weight begin.",)))
        with self.started(tmp_path, script, ready=False) as (program, url):
            port = int(url.rpartition(":")[2])
            wait_until(lambda: not port_is_free(port), within=30)
            assert requests.get(f"{url}/health", timeout=20).status_code == 503
            program.wait_for_output("ready to roll", within=30)
            assert requests.get(f"{url}/health", timeout=20).status_code == 200
            assert "Load weight begin." in program.output

    def test_its_death_leaves_its_status(self, tmp_path: Path) -> None:
        with self.started(tmp_path, Script(faults=(Fault("exit", status=9),))) as (program, url):
            with pytest.raises(requests.ConnectionError):
                requests.post(f"{url}/generate", json={"text": "a"}, timeout=20)
            assert program.wait(within=20) == 9

    def test_its_children_outlive_it_but_not_its_group(self, tmp_path: Path) -> None:
        with self.started(tmp_path, Script(start=Start(children=2))) as (program, _):
            program.process.kill()
            program.wait(within=20)
            assert len(in_session(program.pid)) == 2
        assert not in_session(program.pid)

    def test_the_graph_flag_of_another_version_is_refused(self, tmp_path: Path) -> None:
        with self.started(tmp_path, Script(), "--cuda-graph-max-bs", "4", ready=False) as (program, _):
            assert program.wait(within=30) == 2
        assert "--cuda-graph-max-bs" in program.output

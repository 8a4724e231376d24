"""What SGLang's protocol promises, as tests that a class for each server inherits.

`url` is a server that serves a chain of EAGLE-3 (three steps) with --enable-metrics.
"""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import requests

from tests.support.processes import wait_until

PROMPT = [40, 50, 60, 70]
CONTEXT = 2048
GREEDY = {"temperature": 0, "max_new_tokens": 12, "ignore_eos": True}
LONG = {**GREEDY, "max_new_tokens": 2000}
CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "to measure is to know"}],
    "max_tokens": 10,
    "temperature": 0,
    "ignore_eos": True,
}
META = {
    "id": str,
    "finish_reason": dict,
    "prompt_tokens": int,
    "completion_tokens": int,
    "cached_tokens": int,
    "e2e_latency": float,
    "queue_time": float,
    "first_token_latency": float,
    "decode_throughput": float,
}
SPEC = {
    "spec_verify_ct": int,
    "spec_num_correct_drafts": int,
    "spec_num_proposed_drafts": int,
    "spec_accept_rate": float,
    "spec_accept_length": float,
    "spec_correct_drafts_histogram": list,
}


def post(url: str, path: str, body: Any, **options: Any) -> requests.Response:
    return requests.post(f"{url}{path}", json=body, timeout=120, **options)


def generate(url: str, **body: Any) -> Any:
    response = post(url, "/generate", {"input_ids": PROMPT, "sampling_params": GREEDY, **body})
    assert response.status_code == 200, response.text
    return response.json()


def events(response: requests.Response) -> Iterator[Any]:
    """The parsed events of a stream; it must end with [DONE]."""
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"].startswith("text/event-stream")
    last = b""
    for line in response.iter_lines():
        if line:
            last = line
            if line != b"data: [DONE]":
                yield json.loads(line.removeprefix(b"data: "))
    assert last == b"data: [DONE]"


def flush(url: str) -> None:
    assert requests.post(f"{url}/flush_cache", params={"timeout": 30}, timeout=60).status_code == 200


def typed(values: dict[str, Any], types: dict[str, type]) -> None:
    for name, kind in types.items():
        assert isinstance(values[name], kind), (name, values.get(name))


@contextmanager
def busy(url: str) -> Iterator[Future[Any]]:
    """A long request `busy` on its way, for the length of a block; its last event to come."""
    started = threading.Event()

    def stream() -> Any:
        body = {"input_ids": PROMPT, "sampling_params": LONG, "rid": "busy", "stream": True}
        chunks = []
        for chunk in events(post(url, "/generate", body, stream=True)):
            chunks.append(chunk)
            started.set()
        return chunks[-1]

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(stream)
        try:
            wait_until(lambda: started.is_set() or answer.done(), within=60, what="the request to run")
            yield answer
        finally:
            post(url, "/abort_request", {"rid": "busy"})


class Contract:
    """Each test is one promise."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.mark.parametrize("path", ["/ready", "/health", "/health_generate", "/v1/models"])
    def test_it_is_alive(self, path: str, url: str) -> None:
        assert requests.get(url + path, timeout=60).status_code == 200

    def test_server_info_tells_the_resolved_settings(self, url: str) -> None:
        info = requests.get(f"{url}/server_info", timeout=60).json()
        assert info == requests.get(f"{url}/get_server_info", timeout=60).json() | {
            "internal_states": info["internal_states"]
        }
        assert info["status"] == "ready"
        assert info["speculative_algorithm"] == "EAGLE3"
        assert [info[f"speculative_{name}"] for name in ("num_steps", "eagle_topk", "num_draft_tokens")] == [3, 1, 4]
        assert (info["tp_size"], info["dp_size"]) == (1, 1)
        typed(info, {"version": str, "model_path": str, "random_seed": int, "launch_command": str, "dtype": str})
        assert info["internal_states"][0]["effective_max_running_requests_per_dp"] == 4

    def test_model_info_and_models_name_the_model(self, url: str) -> None:
        info = requests.get(f"{url}/model_info", timeout=60).json()
        assert info["is_generation"] is True
        assert info["has_image_understanding"] is False
        models = requests.get(f"{url}/v1/models", timeout=60).json()
        assert models["object"] == "list"
        assert models["data"][0]["id"] == info["served_model_name"]
        assert models["data"][0]["max_model_len"] == CONTEXT

    def test_generate_counts_tokens_and_speculation(self, url: str) -> None:
        answer = generate(url)
        meta = answer["meta_info"]
        typed(meta, {**META, **SPEC})
        assert meta["finish_reason"] == {"type": "length", "length": 12}
        assert len(answer["output_ids"]) == meta["completion_tokens"] == 12
        assert meta["prompt_tokens"] == len(PROMPT)
        histogram = meta["spec_correct_drafts_histogram"]
        assert sum(histogram) == meta["spec_verify_ct"]
        assert sum(i * count for i, count in enumerate(histogram)) == meta["spec_num_correct_drafts"]
        assert meta["spec_num_proposed_drafts"] == 3 * meta["spec_verify_ct"]
        assert meta["spec_accept_length"] == pytest.approx(12 / meta["spec_verify_ct"])

    def test_one_token_has_no_speculative_fields(self, url: str) -> None:
        meta = generate(url, sampling_params={**GREEDY, "max_new_tokens": 1})["meta_info"]
        assert meta["completion_tokens"] == 1
        assert not set(SPEC) & set(meta)

    def test_no_token_is_an_empty_answer(self, url: str) -> None:
        answer = generate(url, sampling_params={**GREEDY, "max_new_tokens": 0})
        assert (answer["text"], answer["output_ids"]) == ("", [])
        assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 0}

    def test_a_list_gives_a_list(self, url: str) -> None:
        answers = generate(url, input_ids=[PROMPT, PROMPT[:2]])
        assert [answer["meta_info"]["prompt_tokens"] for answer in answers] == [4, 2]
        (single,) = generate(url, input_ids=[PROMPT])
        assert single["output_ids"] == answers[0]["output_ids"]

    def test_text_is_tokenized_by_the_server(self, url: str) -> None:
        tokens = post(url, "/v1/tokenize", {"prompt": "to measure"}).json()
        answer = post(url, "/generate", {"text": "to measure", "sampling_params": GREEDY}).json()
        assert answer["meta_info"]["prompt_tokens"] == tokens["count"] == len(tokens["tokens"])
        assert answer["output_ids"] == generate(url, input_ids=tokens["tokens"])["output_ids"]

    def test_n_gives_a_list(self, url: str) -> None:
        answers = generate(url, sampling_params={**GREEDY, "n": 2})
        assert [answer["output_ids"] for answer in answers] == [answers[0]["output_ids"]] * 2

    def test_the_id_asked_for_is_the_id_given(self, url: str) -> None:
        assert generate(url, rid="mine")["meta_info"]["id"] == "mine"

    def test_a_stream_is_cumulative_and_ends_as_the_whole(self, url: str) -> None:
        whole = generate(url)
        body = {"input_ids": PROMPT, "sampling_params": GREEDY, "stream": True}
        chunks = list(events(post(url, "/generate", body, stream=True)))
        for before, after in pairwise(chunks):
            assert after["output_ids"][: len(before["output_ids"])] == before["output_ids"]
            assert before["meta_info"]["finish_reason"] is None
            assert before["meta_info"]["completion_tokens"] == len(before["output_ids"])
            assert not set(SPEC) & set(before["meta_info"])
        assert len(chunks) > 1
        last = chunks[-1]
        assert (last["text"], last["output_ids"]) == (whole["text"], whole["output_ids"])
        typed(last["meta_info"], SPEC)

    def test_a_stop_string_is_cut_off(self, url: str) -> None:
        whole = generate(url)["text"]
        string = whole[3:5]
        answer = generate(url, sampling_params={**GREEDY, "stop": string})
        assert answer["text"] == whole[: whole.find(string)]
        assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": string}

    def test_a_stop_token_is_counted_but_not_shown(self, url: str) -> None:
        tokens = generate(url)["output_ids"]
        params = {**GREEDY, "ignore_eos": False, "stop_token_ids": [tokens[3]]}
        answer = generate(url, sampling_params=params)
        end = tokens.index(tokens[3]) + 1
        assert answer["output_ids"] == tokens[:end]
        assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": tokens[3]}
        assert answer["meta_info"]["completion_tokens"] == end
        shorter = {**GREEDY, "max_new_tokens": end - 1}
        assert answer["text"] == generate(url, sampling_params=shorter)["text"]

    def test_chat_applies_the_template_that_tokenize_applies(self, url: str) -> None:
        tokens = post(url, "/v1/tokenize", {"messages": CHAT["messages"]}).json()
        body = {**CHAT, "return_token_ids": True, "return_meta_info": True}
        answer = post(url, "/v1/chat/completions", body).json()
        choice = answer["choices"][0]
        assert choice["prompt_token_ids"] == tokens["tokens"]
        assert answer["usage"]["prompt_tokens"] == tokens["count"]
        assert len(choice["response_token_ids"]) == answer["usage"]["completion_tokens"] == 10
        assert answer["usage"]["total_tokens"] == tokens["count"] + 10
        typed(choice["meta_info"], {**META, **SPEC})
        assert (answer["object"], choice["finish_reason"]) == ("chat.completion", "length")
        assert choice["message"]["role"] == "assistant"
        assert "meta_info" not in post(url, "/v1/chat/completions", CHAT).json()["choices"][0]

    def test_chat_streams_deltas_then_details_then_usage(self, url: str) -> None:
        whole = post(url, "/v1/chat/completions", CHAT).json()
        body = {
            **CHAT,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_spec_tokens_details": True,
        }
        *chunks, details, usage = events(post(url, "/v1/chat/completions", body, stream=True))
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
        assert text == whole["choices"][0]["message"]["content"]
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
        assert details["choices"] == usage["choices"] == []
        typed(details["sglext"]["spec_tokens_details"], SPEC)
        assert usage["usage"]["completion_tokens"] == 10

    @pytest.mark.parametrize("name", ["return_meta_info", "return_token_ids"])
    def test_chat_refuses_in_a_stream_what_only_an_answer_can_carry(self, name: str, url: str) -> None:
        response = post(url, "/v1/chat/completions", {**CHAT, "stream": True, name: True})
        assert response.status_code == 400
        assert f"{name} is not supported with streaming" in response.json()["message"]

    def test_completions_answers_a_bare_prompt(self, url: str) -> None:
        body = {"model": "m", "prompt": "to measure", "max_tokens": 5, "temperature": 0, "ignore_eos": True}
        answer = post(url, "/v1/completions", body).json()
        assert (answer["object"], answer["usage"]["completion_tokens"]) == ("text_completion", 5)
        chunks = list(events(post(url, "/v1/completions", {**body, "stream": True}, stream=True)))
        assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == answer["choices"][0]["text"]

    def test_a_second_request_reuses_the_prefix_until_a_flush(self, url: str) -> None:
        prompt = list(range(100, 140))
        flush(url)
        assert generate(url, input_ids=prompt)["meta_info"]["cached_tokens"] == 0
        # All but the last token, whose logits are needed, and the one whose draft depends on it.
        assert generate(url, input_ids=prompt)["meta_info"]["cached_tokens"] == len(prompt) - 2
        flush(url)
        assert generate(url, input_ids=prompt)["meta_info"]["cached_tokens"] == 0

    def test_flush_is_refused_while_a_request_runs_and_waits_if_asked(self, url: str) -> None:
        with ThreadPoolExecutor(1) as pool, busy(url):
            assert requests.post(f"{url}/flush_cache", timeout=60).status_code == 400
            waiting = pool.submit(requests.post, f"{url}/flush_cache", params={"timeout": 60}, timeout=90)
            post(url, "/abort_request", {"rid": "busy"})
            assert waiting.result().status_code == 200

    def test_an_aborted_request_ends_with_what_it_has(self, url: str) -> None:
        with busy(url) as answer:
            assert post(url, "/abort_request", {"rid": "busy"}).status_code == 200
        meta = answer.result()["meta_info"]
        assert meta["finish_reason"]["type"] == "abort"
        assert meta["completion_tokens"] < LONG["max_new_tokens"]

    def test_aborting_what_is_unknown_is_no_error(self, url: str) -> None:
        assert post(url, "/abort_request", {"rid": "nobody"}).status_code == 200

    @pytest.mark.parametrize(
        "params, reason",
        [
            ({"temperature": -1}, "temperature must be a non-negative finite number"),
            ({"top_p": 2}, "top_p must be in (0, 1]"),
            ({"top_k": -2}, "top_k must be -1 (disable) or at least 1"),
            ({"min_p": -1}, "min_p must be in [0, 1]"),
            ({"repetition_penalty": 9}, "repetition_penalty must be in (0, 2]"),
            ({"max_new_tokens": -5}, "max_new_tokens must be at least 0"),
            (
                {"max_new_tokens": 2100},
                f"Requested token count exceeds the model's maximum context length of {CONTEXT}",
            ),
            ({"nonsense": 1}, "unknown field `nonsense`"),
            ({"temperature": "hot"}, "invalid type"),
        ],
    )
    def test_absurd_parameters_are_a_400_with_the_reason(self, params: dict[str, Any], reason: str, url: str) -> None:
        response = post(url, "/generate", {"input_ids": PROMPT, "sampling_params": params})
        assert response.status_code == 400
        error = response.json()["error"]
        assert reason in (error["message"] if isinstance(error, dict) else error)

    @pytest.mark.parametrize(
        "change, reason",
        [
            ({"messages": []}, "Messages cannot be empty."),
            ({"temperature": -1}, "temperature must be a non-negative finite number"),
            ({"max_tokens": 2100}, f"Requested token count exceeds the model's maximum context length of {CONTEXT}"),
            ({"messages": [{"role": "robot", "content": "x"}]}, "'role' must be one of"),
            (
                {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
                "Model only supports text input; received unsupported content type 'image_url'.",
            ),
        ],
    )
    def test_chat_refuses_with_the_reason(self, change: dict[str, Any], reason: str, url: str) -> None:
        response = post(url, "/v1/chat/completions", {**CHAT, **change})
        assert (response.status_code, response.json()["code"]) == (400, 400)
        assert reason in response.json()["message"]

    def test_a_prompt_as_long_as_the_context_is_refused(self, url: str) -> None:
        response = post(url, "/generate", {"input_ids": [40] * CONTEXT, "sampling_params": {"max_new_tokens": 1}})
        assert response.status_code == 400
        assert f"is longer than the model's context length ({CONTEXT} tokens)" in response.json()["error"]["message"]

    @pytest.mark.parametrize("path", ["/generate", "/v1/chat/completions", "/v1/tokenize"])
    def test_malformed_json_is_a_400(self, path: str, url: str) -> None:
        headers = {"Content-Type": "application/json"}
        response = requests.post(url + path, data='{"text":', headers=headers, timeout=60)
        assert response.status_code == 400
        assert "JSON decode error" in response.json()["message"]

    def test_a_prompt_is_required(self, url: str) -> None:
        response = post(url, "/generate", {"sampling_params": GREEDY})
        assert response.status_code == 400
        assert "Either text, input_ids or input_embeds should be provided." in response.text

    def test_an_unknown_route_is_a_404(self, url: str) -> None:
        response = requests.get(f"{url}/no/such/route", timeout=60)
        assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})

    def test_another_method_is_a_405(self, url: str) -> None:
        response = requests.get(f"{url}/v1/chat/completions", timeout=60)
        assert (response.status_code, response.json()) == (405, {"detail": "Method Not Allowed"})

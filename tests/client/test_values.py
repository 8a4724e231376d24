"""Addresses, headers, sampling and bodies: what goes over the wire, without one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specforge.client.endpoint import Endpoint, parse_header
from specforge.client.sampling import Sampling
from specforge.client.wire import Route, Wire, with_request_id
from specforge.errors import UsageError

MESSAGES = [{"role": "user", "content": "Hi, “you”"}]
GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


@pytest.mark.parametrize(
    "given, base_url",
    [
        ("http://127.0.0.1:30000", "http://127.0.0.1:30000"),
        ("127.0.0.1:30000", "http://127.0.0.1:30000"),
        ("https://host/a/b/", "https://host/a/b"),
        ("https://host:8443/v1/", "https://host:8443"),
        ("http://host/tenant/v1", "http://host/tenant"),
        ("http://[::1]:30000", "http://[::1]:30000"),
    ],
)
def test_an_address_is_read_and_openai_s_suffix_taken_off(given: str, base_url: str):
    assert Endpoint.parse(given).base_url == base_url
    assert Endpoint.parse(given).url("/generate") == base_url + "/generate"


@pytest.mark.parametrize("given", ["", "ftp://host", "http://", "http://host:port", "http://host:99999"])
def test_what_is_no_address_is_refused_with_the_flag(given: str):
    with pytest.raises(UsageError, match="--base-url: "):
        Endpoint.parse(given)


def test_the_key_is_a_bearer_token_unless_a_header_says_otherwise():
    assert Endpoint.parse("host", "k").headers() == {"Authorization": "Bearer k"}
    own = Endpoint.parse("host", "k", (("Authorization", "Basic x"), ("X-Team", "red")))
    assert own.headers() == {"Authorization": "Basic x", "X-Team": "red"}
    assert Endpoint.parse("host").headers() == {}


def test_a_user_in_an_address_becomes_a_header_and_is_shown_nowhere():
    endpoint = Endpoint.parse("https://ada:p%40ss@host:8443/v1")
    assert endpoint.base_url == "https://host:8443"
    assert endpoint.headers() == {"Authorization": "Basic YWRhOnBAc3M="}
    for wrong, given in (("ada:hush@host", "k"), ("ftp://ada:hush@host", None), ("ada:hush@host:99999", None)):
        with pytest.raises(UsageError) as refused:
            Endpoint.parse(wrong, given)
        assert "hush" not in str(refused.value)


def test_a_header_is_a_name_and_a_value():
    assert parse_header("X-Team:  red: and blue ") == ("X-Team", "red: and blue")
    for wrong in ("X-Team", ": red", "X: a\r\nY: b"):
        with pytest.raises(UsageError, match="--header: "):
            parse_header(wrong)


def body(wire: Wire, sampling: Sampling | None = None, **given: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"messages": MESSAGES, "input_ids": [3, 4], "max_new_tokens": 9}
    sent = wire.body(sampling=sampling or Sampling.greedy(), **{**defaults, **given})
    found: dict[str, Any] = json.loads(sent)
    return found


def test_a_chat_request_states_everything():
    assert body(Wire(Route.CHAT, model="m"), round_index=2) == {
        **GREEDY,
        "seed": 44,
        "max_tokens": 9,
        "model": "m",
        "messages": MESSAGES,
        "return_meta_info": True,
        "return_token_ids": True,
    }


def test_a_server_without_meta_info_is_not_asked_for_it():
    assert not {"return_meta_info", "return_token_ids"} & set(body(Wire(Route.CHAT, has_meta_info=False)))


def test_a_streamed_chat_asks_for_usage_and_details_and_not_for_what_is_refused_there():
    sent = body(Wire(Route.CHAT, stream=True))
    assert sent["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert sent["return_spec_tokens_details"] is True
    assert not {"return_meta_info", "return_token_ids"} & set(sent)


def test_a_generation_states_the_same_in_its_own_names():
    assert body(Wire(Route.GENERATE)) == {
        "input_ids": [3, 4],
        "sampling_params": {**GREEDY, "sampling_seed": 42, "max_new_tokens": 9},
    }
    assert body(Wire(Route.GENERATE, stream=True))["stream"] is True
    with pytest.raises(ValueError, match="token ids"):
        body(Wire(Route.GENERATE), input_ids=None)


def test_what_a_user_adds_goes_where_each_route_wants_it():
    sampling = Sampling.greedy(top_p=0.9)
    sampling = Sampling(sampling.values, extra_body={"ignore_eos": True, "lora_path": "l", "top_k": 5})
    chat, generation = body(Wire(Route.CHAT), sampling), body(Wire(Route.GENERATE), sampling)
    assert (chat["ignore_eos"], chat["lora_path"], chat["top_k"], chat["top_p"]) == (True, "l", 5, 0.9)
    params = generation["sampling_params"]
    assert (generation["lora_path"], params["ignore_eos"], params["top_k"]) == ("l", True, 5)
    assert "lora_path" not in params


def test_sampling_left_to_the_model_states_only_the_seed_and_the_limit():
    assert Sampling(seed=7).chat_fields(9, 1) == {"seed": 8, "max_tokens": 9}
    assert Sampling(seed=7).generate_fields(9, 1) == {"sampling_params": {"sampling_seed": 8, "max_new_tokens": 9}}


def test_greedy_is_what_gives_the_same_tokens_each_time():
    assert Sampling.greedy().is_greedy
    assert not Sampling.greedy(temperature=0.1).is_greedy
    assert not Sampling(Sampling.greedy().values, extra_body={"temperature": 1}).is_greedy
    assert not Sampling().is_greedy, "what the model's defaults are is not known"


def test_a_request_s_id_is_put_into_its_body():
    assert json.loads(with_request_id(b'{"a":{"b":1}}', "r-1")) == {"a": {"b": 1}, "rid": "r-1"}

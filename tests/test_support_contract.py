"""The scripted server against the real SGLang: whatever the first one says, the second one says too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests

from tests.support.scripted import Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer
from tests.support.sglang import ServerFactory, SglangModels

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 12, "temperature": 0}
GENERATE = {"text": "Hello there", "sampling_params": {"max_new_tokens": 12, "temperature": 0}}
IMAGE = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}
]
STREAMED = {"stream": True, "stream_options": {"include_usage": True}, "return_spec_tokens_details": True}
TOO_LONG = {"max_new_tokens": 10**6}

REQUESTS: dict[str, tuple[str, Any]] = {
    "server information": ("/server_info", None),
    "server information, older": ("/get_server_info", None),
    "model information": ("/model_info", None),
    "models": ("/v1/models", None),
    "liveness": ("/ready", None),
    "health": ("/health", None),
    "flush": ("/flush_cache?timeout=5", {}),
    "abort of nothing": ("/abort_request", {"rid": "nothing"}),
    "tokens of a chat": ("/v1/tokenize", {"messages": CHAT["messages"]}),
    "tokens of a text": ("/v1/tokenize", {"prompt": "Hello"}),
    "chat": ("/v1/chat/completions", CHAT),
    "chat with everything": ("/v1/chat/completions", CHAT | {"return_meta_info": True, "return_token_ids": True}),
    "one-token chat": ("/v1/chat/completions", CHAT | {"return_meta_info": True, "max_tokens": 1}),
    "chat twice": ("/v1/chat/completions", CHAT | {"n": 2, "return_meta_info": True}),
    "streamed chat": ("/v1/chat/completions", CHAT | STREAMED),
    "streamed chat with meta_info": ("/v1/chat/completions", CHAT | {"stream": True, "return_meta_info": True}),
    "streamed chat with token ids": ("/v1/chat/completions", CHAT | {"stream": True, "return_token_ids": True}),
    "chat beyond the context": ("/v1/chat/completions", CHAT | {"max_tokens": 10**6}),
    "chat without messages": ("/v1/chat/completions", {"model": "m"}),
    "image to a text model": ("/v1/chat/completions", CHAT | {"messages": IMAGE}),
    "generation": ("/generate", GENERATE),
    "generation of a list": ("/generate", GENERATE | {"text": ["Hello", "there"]}),
    "generation from ids": ("/generate", {"input_ids": [5, 6, 7], "sampling_params": GENERATE["sampling_params"]}),
    "streamed generation": ("/generate", GENERATE | {"stream": True}),
    "generation beyond the context": ("/generate", GENERATE | {"sampling_params": TOO_LONG}),
}

pytestmark = pytest.mark.sglang


@pytest.fixture(scope="module")
def real(sglang_models: SglangModels, sglang_server: ServerFactory) -> str:
    """A real server that speculates with a random EAGLE3 head."""
    drafting = [
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(sglang_models.eagle3)),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    ]
    return sglang_server(sglang_models.target, "--dtype", "float32", "--max-running-requests", "4", *drafting)


@pytest.fixture(scope="module")
def scripted(sglang_models: SglangModels) -> Iterator[str]:
    """A scripted server of the same kind."""
    script = Script(speculation=Speculation(), wire=Wire(context_length=4096))
    with ScriptedServer(replace(script, model=str(sglang_models.target))) as server:
        yield server.base_url


def ask(base_url: str, path: str, body: Any) -> requests.Response:
    if body is None:
        return requests.get(base_url + path, timeout=120)
    return requests.post(base_url + path, json=body, timeout=120)


def content(response: requests.Response) -> Any:
    """The body as JSON; of a stream its last events, as one chunk's shape is every chunk's."""
    if response.headers.get("Content-Type", "").startswith("text/event-stream"):
        lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        assert lines.pop() == "[DONE]"
        return [json.loads(line) for line in lines[-3:]]
    return response.json() if response.headers.get("Content-Type") == "application/json" else None


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """What the first holds and the second does not, or not in that type. Null and numbers pass for each other."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours:
            if name not in theirs:
                yield f"{where}.{name} is ours alone"
            else:
                yield from differences(ours[name], theirs[name], f"{where}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        for at, (our, their) in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(our, their, f"{where}[{at}]")
    elif ours is not None and theirs is not None and kind(ours) is not kind(theirs):
        yield f"{where} is {ours!r} here and {theirs!r} there"


def kind(value: Any) -> type:
    """The type, with every number alike."""
    return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


@pytest.mark.parametrize("path, body", REQUESTS.values(), ids=REQUESTS.keys())
def test_it_says_what_sglang_says(scripted: str, real: str, path: str, body: Any) -> None:
    ours, theirs = ask(scripted, path, body), ask(real, path, body)
    assert ours.status_code == theirs.status_code
    assert list(differences(content(ours), content(theirs))) == []


def test_the_speculative_fields_are_exactly_sglangs(scripted: str, real: str) -> None:
    def fields(base_url: str, body: Any, found: Callable[[Any], Any]) -> set[str]:
        info = found(content(ask(base_url, "/v1/chat/completions", body)))
        return {name for name in info if name.startswith("spec_")}

    def of_meta_info(body: Any) -> Any:
        return body["choices"][0]["meta_info"]

    whole = CHAT | {"return_meta_info": True}
    one = whole | {"max_tokens": 1}
    assert fields(scripted, whole, of_meta_info) == fields(real, whole, of_meta_info) != set()
    assert fields(scripted, one, of_meta_info) == fields(real, one, of_meta_info) == set()

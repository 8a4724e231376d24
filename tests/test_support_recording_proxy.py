"""The recording proxy: it changes nothing and keeps everything."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from tests.support.recording_proxy import RecordingProxy, generations, read_exchanges
from tests.support.scripted import Fault, Pace, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

CHAT = {"messages": [{"role": "user", "content": "Cześć: 2 + 2?"}], "max_tokens": 32}


def test_what_it_keeps_is_what_the_server_sent_and_what_the_client_got(tmp_path: Path) -> None:
    with (
        ScriptedServer(Script(speculation=Speculation(), pace=Pace(per_step=0.01))) as server,
        RecordingProxy(server.base_url, tmp_path / "wire.jsonl") as proxy,
    ):
        url = f"{proxy.base_url}/v1/chat/completions"
        got = [
            requests.post(url, json=CHAT | {"return_meta_info": True}, timeout=20),
            requests.post(url, json=CHAT | {"stream": True, "return_spec_tokens_details": True}, timeout=20),
            requests.get(f"{proxy.base_url}/server_info", timeout=20),
        ]
        sent = server.requests
    kept = read_exchanges(tmp_path / "wire.jsonl")
    texts = [response.content.decode() for response in got]
    assert [exchange.response for exchange in kept] == texts == [entry["response"] for entry in sent]
    assert [exchange.complete for exchange in kept] == [True] * 3
    whole, streamed = generations(kept)
    details = streamed.events()[-1]["sglext"]["spec_tokens_details"]
    assert details["spec_verify_ct"] == whole.body()["choices"][0]["meta_info"]["spec_verify_ct"]


def test_errors_pass_through_as_they_are(tmp_path: Path) -> None:
    script = Script(faults=(Fault("status", status=503, retry_after=1),), wire=Wire(api_key="k"))
    with (
        ScriptedServer(script) as server,
        RecordingProxy(server.base_url, tmp_path / "wire.jsonl") as proxy,
    ):
        url = f"{proxy.base_url}/v1/chat/completions"
        refused = requests.post(url, json=CHAT, timeout=20)
        failed = requests.post(url, json=CHAT, headers={"Authorization": "Bearer k"}, timeout=20)
    assert (refused.status_code, failed.status_code, failed.headers["Retry-After"]) == (401, 503, "1")
    assert [exchange.status for exchange in read_exchanges(tmp_path / "wire.jsonl")] == [401, 503]


@pytest.mark.parametrize("what", ["drop", "refuse"])
def test_a_connection_cut_behind_it_is_cut_before_it_and_kept_as_incomplete(tmp_path: Path, what: str) -> None:
    with (
        ScriptedServer(Script(faults=(Fault(what),))) as server,  # type: ignore[arg-type]
        RecordingProxy(server.base_url, tmp_path / "wire.jsonl") as proxy,
        pytest.raises(requests.RequestException),
    ):
        requests.post(f"{proxy.base_url}/v1/chat/completions", json=CHAT, timeout=20)
    (exchange,) = read_exchanges(tmp_path / "wire.jsonl")
    assert not exchange.complete
    assert exchange.status == (200 if what == "drop" else None)

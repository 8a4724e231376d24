"""Control calls, the probe and measured requests against scripted servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from specforge.client.control import ControlClient
from specforge.client.endpoint import Endpoint
from specforge.client.measured import MeasuredClient, RequestFailure
from specforge.client.probe import Capabilities, probe
from specforge.client.reply import Reply
from specforge.client.sampling import Sampling
from specforge.client.wire import Route
from specforge.client.wire import Wire as HowAsked
from specforge.errors import ServerError
from tests.support.processes import free_port
from tests.support.scripted import Fault, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

MESSAGES = [{"role": "user", "content": "Hi"}]
OLD_ROUTES = ("/ready", "/server_info", "/model_info")


def control(server: ScriptedServer, key: str | None = None) -> ControlClient:
    return ControlClient(Endpoint.parse(server.base_url, key))


def test_control_calls_give_what_the_server_says():
    with ScriptedServer(Script(speculation=Speculation())) as server:
        client = control(server)
        assert (client.ready(), client.health()) == (True, True)
        assert (client.server_info() or {})["speculative_algorithm"] == "EAGLE3"
        assert (client.model_info() or {})["model_path"] == "scripted/model"
        assert client.models()[0]["max_model_len"] == 32768
        tokens = client.tokenize(MESSAGES)
        assert tokens
        assert client.tokenize(MESSAGES, {"enable_thinking": False}) == tokens
        assert client.flush_cache() is True
        client.close()


def test_an_older_server_is_asked_under_its_own_names():
    with ScriptedServer(Script(wire=Wire(missing=OLD_ROUTES))) as server:
        client = control(server)
        assert client.ready() is True
        assert (client.server_info() or {})["version"] == "0.5.23"
        assert (client.model_info() or {})["model_path"] == "scripted/model"
        client.close()


def test_a_route_that_is_not_served_is_none():
    missing = (*OLD_ROUTES, "/get_server_info", "/get_model_info", "/v1/models", "/flush_cache", "/v1/tokenize")
    with ScriptedServer(Script(wire=Wire(missing=missing))) as server:
        client = control(server)
        found = (client.server_info(), client.model_info(), client.models(), client.flush_cache())
        assert found == (None, None, [], False)
        assert client.tokenize(MESSAGES) is None
        assert client.ready() is False
        client.close()


def test_a_flush_that_stays_refused_is_an_error_with_the_server_s_answer():
    with ScriptedServer(Script(wire=Wire(flush_refusals=10**6))) as server:
        client = control(server)
        with pytest.raises(ServerError, match=r"refused to flush .* answered 400: Flush cache failed"):
            client.flush_cache(patience=0.2)
        client.close()
        assert len([entry for entry in server.requests if entry["path"] == "/flush_cache"]) > 1


def test_a_missing_key_and_a_missing_server_are_named():
    with ScriptedServer(Script(wire=Wire(api_key="k"))) as server:
        with pytest.raises(ServerError, match=r"answered 401: the server wants a key \(--api-key\)"):
            control(server).server_info()
        assert control(server, "k").server_info() is not None
    port = free_port()
    nobody = ControlClient(Endpoint.parse(f"127.0.0.1:{port}"))
    assert (nobody.ready(), nobody.health()) == (False, False)
    with pytest.raises(ServerError, match=f"no server answers at http://127.0.0.1:{port}"):
        nobody.server_info()


def probed(wire: Wire, *, stream: bool = False) -> Capabilities:
    with ScriptedServer(Script(wire=wire)) as server:
        client = control(server)
        try:
            return probe(client, stream=stream)
        finally:
            client.close()


def test_today_s_server_is_asked_by_chat_and_streamed_by_generate():
    found, streamed = probed(Wire(context_length=4096, images=True)), probed(Wire(), stream=True)
    assert found.wire == HowAsked(Route.CHAT, False, True, "scripted/model")
    assert (found.can_tokenize, found.needs_template, found.max_model_len, found.has_images) == (
        True,
        False,
        4096,
        True,
    )
    assert found.notes == ()
    assert (streamed.wire.route, streamed.wire.stream) == (Route.GENERATE, True)


@pytest.mark.parametrize(
    "wire, route, needs_template",
    [
        (Wire(meta_info=False, token_ids=False), Route.GENERATE, False),
        (Wire(refuses=("return_meta_info",)), Route.GENERATE, False),
        (Wire(meta_info=False, missing=("/v1/tokenize",)), Route.GENERATE, True),
        (Wire(meta_info=False, missing=("/generate",)), Route.CHAT, False),
        (Wire(missing=("/v1/chat/completions",)), Route.GENERATE, False),
        (Wire(missing=("/generate", "/v1/tokenize")), Route.CHAT, False),
    ],
    ids=["older", "strict", "oldest", "another engine", "no chat", "a router"],
)
def test_each_age_of_server_is_asked_by_the_route_that_tells_most(wire: Wire, route: Route, needs_template: bool):
    found = probed(wire)
    assert (found.wire.route, found.needs_template) == (route, needs_template)


def test_what_can_not_be_known_of_a_server_is_noted():
    (no_meta,) = probed(Wire(meta_info=False, missing=("/generate",))).notes
    assert "no meta_info" in no_meta
    (no_lengths,) = probed(Wire(missing=("/v1/tokenize",))).notes
    assert "no /v1/tokenize" in no_lengths


def send(script: Script, timeout: float = 5.0, times: int = 1, **how: Any) -> tuple[Reply, ScriptedServer]:
    """Sends one request (the last of ``times``) and gives its answer."""
    with ScriptedServer(script) as server:
        wire = HowAsked(how.pop("route", Route.CHAT), **how)

        async def main() -> Reply:
            client = MeasuredClient(Endpoint.parse(server.base_url), wire, timeout)
            try:
                for at in range(times):
                    reply = await client.send(wire.body(MESSAGES, [3, 4], Sampling.greedy(), 50), f"r-{at}")
                return reply
            finally:
                await client.close()

        return asyncio.run(main()), server


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", list(Route))
def test_every_way_of_asking_gives_the_same_counts_of_the_same_answer(route: Route, stream: bool):
    reply, server = send(Script(speculation=Speculation()), route=route, stream=stream)
    (entry,) = server.generations
    assert entry["request"]["rid"] == "r-0"
    assert reply.completion_tokens > 1
    assert reply.spec is not None
    assert reply.spec.correct_drafts is not None
    assert reply.completion_tokens <= 1 + reply.spec.verify_steps + reply.spec.correct_drafts
    assert 0 < reply.latency < 5
    assert (reply.first_token_at is not None) == stream


def test_connections_are_kept_and_the_id_differs_by_request():
    _, server = send(Script(), times=3)
    assert [entry["request"]["rid"] for entry in server.generations] == ["r-0", "r-1", "r-2"]


@pytest.mark.parametrize(
    "fault, kind, retryable",
    [
        (Fault("status", status=503), "status", True),
        (Fault("status", status=429), "status", True),
        (Fault("status", status=400), "status", False),
        (Fault("status", status=404), "status", False),
        (Fault("malformed"), "malformed", True),
        (Fault("drop"), "connection", True),
        (Fault("refuse"), "connection", True),
        (Fault("exit"), "connection", True),
        (Fault("hang"), "timeout", False),
    ],
    ids=lambda value: f"{value.what} {value.status}" if isinstance(value, Fault) else None,
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_failure_has_its_kind_and_whether_to_try_again(fault: Fault, kind: str, retryable: bool, stream: bool):
    with pytest.raises(RequestFailure) as failure:
        send(Script(faults=(fault,)), timeout=0.5, stream=stream)
    assert (failure.value.kind, failure.value.retryable) == (kind, retryable)
    assert "\n" not in str(failure.value)


def test_a_prompt_beyond_the_context_is_too_long_and_not_tried_again():
    with pytest.raises(RequestFailure) as failure:
        send(Script(wire=Wire(context_length=20)))
    assert (failure.value.kind, failure.value.retryable) == ("too_long", False)

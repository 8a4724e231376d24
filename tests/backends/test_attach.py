"""Attaching to servers that run already, routers in front of them included."""

from __future__ import annotations

import pytest
import requests

from specforge.backends.attach import Attacher
from specforge.client import Endpoint
from specforge.errors import ServerError
from specforge.matrix import SpecConfig
from tests.support.processes import free_port
from tests.support.scripted import Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

CONFIG = SpecConfig.parse("1,0,0,0")


def test_what_the_server_says_about_itself_is_read():
    with ScriptedServer(Script(speculation=Speculation(num_steps=5, num_draft_tokens=6))) as running:
        server = Attacher(Endpoint.parse(running.base_url)).start(CONFIG)
        assert server.about.server_info is not None
        assert server.about.server_info["speculative_num_steps"] == 5
        assert server.about.model_info is not None
        assert server.about.notes == ()


def test_the_server_is_left_running_and_unchanged():
    with ScriptedServer() as running:
        with Attacher(Endpoint.parse(running.base_url)).start(CONFIG) as server:
            server.check_alive()
        assert requests.get(running.base_url + "/ready", timeout=5).status_code == 200
        assert not [entry for entry in running.requests if entry["path"] == "/flush_cache"]
        assert running.generations == []


def test_a_router_that_lacks_endpoints_is_used_and_the_gaps_are_said_once():
    missing = ("/ready", "/server_info", "/get_server_info", "/model_info", "/get_model_info")
    with ScriptedServer(Script(wire=Wire(missing=missing))) as router:
        attacher = Attacher(Endpoint.parse(router.base_url))
        first, second = attacher.start(CONFIG), attacher.start(SpecConfig.parse("2,0,0,0"))
    assert (first.about.server_info, first.about.model_info) == (None, None)
    assert ["/server_info" in first.about.notes[0], "/model_info" in first.about.notes[1]] == [True, True]
    assert second.about.notes == ()


def test_a_server_with_a_key_is_asked_with_it():
    with ScriptedServer(Script(wire=Wire(api_key="secret"))) as running:
        server = Attacher(Endpoint.parse(running.base_url, "secret")).start(CONFIG)
        assert server.about.server_info is not None


def test_a_missing_key_is_named():
    with (
        ScriptedServer(Script(wire=Wire(api_key="secret"))) as running,
        pytest.raises(ServerError, match="--api-key"),
    ):
        Attacher(Endpoint.parse(running.base_url)).start(CONFIG)


def test_nobody_there_is_one_line_that_names_the_address_and_the_flag():
    port = free_port()
    with pytest.raises(ServerError, match=rf"127.0.0.1:{port} does not answer .*--base-url"):
        Attacher(Endpoint.parse(f"http://127.0.0.1:{port}")).start(CONFIG)


def test_a_server_that_lives_but_can_make_no_token_is_refused():
    with (
        ScriptedServer(Script(wire=Wire(missing=("/health",)))) as running,
        pytest.raises(ServerError, match="/health says that the server can't produce a token"),
    ):
        Attacher(Endpoint.parse(running.base_url)).start(CONFIG)


def test_a_server_that_went_away_is_no_longer_alive():
    with ScriptedServer() as running:
        server = Attacher(Endpoint.parse(running.base_url)).start(CONFIG)
    with pytest.raises(ServerError, match="no longer answers"):
        server.check_alive()

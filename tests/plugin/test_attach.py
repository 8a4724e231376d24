"""A matrix against servers that run already: behind a path, with a key, behind a router, of another age."""

from __future__ import annotations

from pathlib import Path

import requests
from aiohttp import web

from tests.plugin.stage import Stage
from tests.support.processes import free_port
from tests.support.recording_proxy import RecordingProxy, generations, read_exchanges
from tests.support.recount import recount
from tests.support.scripted import Fault, Replies, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

CONFIG = ("--config-list", "2,0,0,0")
BENCHMARK = ("--benchmark-list", "gsm8k:2")
UNKNOWN = {"batch_size": 2, "num_steps": None, "topk": None, "num_draft_tokens": None, "algorithm": None}


class BehindAPath(RecordingProxy):
    """Serves another server below ``/tenant/a``, as a gateway does, and nothing beside it."""

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        prefix, path = "/tenant/a", request.rel_url.path
        if not path.startswith(prefix + "/"):
            return web.Response(status=404)
        stripped = request.rel_url.with_path(path[len(prefix) :]).with_query(request.rel_url.query)
        return await super()._pass_on(request.clone(rel_url=stripped))


def only_record(stage: Stage) -> dict:
    """The record of a run of one cell."""
    (record,) = stage.records().values()
    return record


def test_a_server_at_a_port_is_measured_as_what_it_says_it_is_and_left_running(stage: Stage):
    speculation = Speculation(algorithm="EAGLE", num_steps=5, topk=4, num_draft_tokens=8)
    with ScriptedServer(Script(speculation=speculation, wire=Wire(max_running_requests=1))) as server:
        address = ("--skip-launch-server", "--port", str(server.port))
        run = stage.pytest("bench_tests", *address, *stage.data, *CONFIG, "1,3,1,4", *BENCHMARK)
        assert requests.get(server.base_url + "/ready", timeout=5).status_code == 200
        changed = {entry["path"] for entry in server.requests if entry["method"] == "POST"}
    assert run.code == 0, run.output
    assert changed == {"/flush_cache", "/v1/tokenize", "/v1/chat/completions"}
    first, second = stage.records().values()
    runs = {"num_steps": 5, "topk": 4, "num_draft_tokens": 8, "algorithm": "EAGLE"}
    assert first["config"] == {"batch_size": 2, **runs}
    assert second["config"] == {"batch_size": 1, **runs}
    assert first["environment"]["backend"] == "attach"
    assert first["environment"]["base_url"] == server.base_url
    assert not first["environment"]["launch_command"]
    assert first["environment"]["server"]["speculative_algorithm"] == "EAGLE"
    said = " ".join(first["environment"]["warnings"])
    assert "a configuration gives the batch size only" in said
    assert "1" in said
    assert any("queue" in warning for warning in first["environment"]["warnings"])
    assert not any("queue" in warning for warning in second["environment"]["warnings"])
    assert f"attached to {server.base_url}" in run.output


def test_a_running_server_is_tried_with_the_sample_rows_and_a_user_in_its_address_is_kept_nowhere(stage: Stage):
    with ScriptedServer() as server:
        address = server.base_url.replace("http://", "http://ada:hush@")
        run = stage.pytest("bench_tests", "--base-url", address, "--samples", *CONFIG, *BENCHMARK)
    assert run.code == 0, run.output
    record = only_record(stage)
    assert record["environment"]["label"] == "sample data"
    assert record["environment"]["base_url"] == server.base_url
    assert record["benchmark"]["source"]["kind"] == "sample"
    assert f"specforge: 1 configuration x 1 benchmark, sample data (attached to {server.base_url})" in run.output
    assert "hush" not in run.output
    kept = [path for path in stage.results.rglob("*") if path.is_file()]
    assert len(kept) > 1
    assert not any(b"hush" in path.read_bytes() for path in kept)


def test_a_path_a_key_and_headers_are_part_of_every_request(stage: Stage, tmp_path: Path):
    script = Script(wire=Wire(api_key="sesame"), speculation=Speculation(), replies=Replies(unverified_share=0.3))
    with (
        ScriptedServer(script) as server,
        BehindAPath(server.base_url, tmp_path / "wire.jsonl") as gateway,
    ):
        url = gateway.base_url + "/tenant/a/v1/"
        run = stage.pytest(
            *("bench_tests", "--base-url", url, "--api-key", "sesame", "--header", "X-Team: red"),
            *(*stage.data, *CONFIG, "--benchmark-list", "gsm8k:12"),
        )
        denied = stage.pytest("bench_tests", "--base-url", url, *stage.data, *CONFIG, *BENCHMARK)
    assert run.code == 0, run.output
    assert denied.code == 1
    assert "--api-key" in denied.output
    record = only_record(stage)
    exchanges = [e for e in generations(read_exchanges(tmp_path / "wire.jsonl")) if '"max_tokens":300' in e.request]
    counted = recount(exchange.response for exchange in exchanges)
    assert record["metrics"]["output_tokens"] == counted.tokens
    assert record["metrics"]["acceptance_length"] == counted.acceptance_length
    assert record["environment"]["base_url"] == gateway.base_url + "/tenant/a"
    assert "sesame" not in str(stage.document())


def test_what_a_router_does_not_tell_is_null_and_said(stage: Stage):
    missing = ("/ready", "/server_info", "/get_server_info", "/model_info", "/get_model_info", "/flush_cache")
    with ScriptedServer(Script(speculation=Speculation(), wire=Wire(missing=missing))) as router:
        run = stage.pytest("bench_tests", "--base-url", router.base_url, *stage.data, *CONFIG, *BENCHMARK)
    record = only_record(stage)
    assert run.code == 0, run.output
    assert record["config"] == UNKNOWN
    assert record["environment"]["server"] is None
    assert record["metrics"]["acceptance_length"] > 1
    assert record["metrics"]["speedup"] is None
    for gap in ("/server_info", "/model_info", "/flush_cache"):
        assert any(gap in warning for warning in record["environment"]["warnings"])
        assert gap in run.output


def test_nobody_at_the_address_fails_each_cell_with_the_address(stage: Stage):
    port = free_port()
    run = stage.pytest("bench_tests", "--skip-launch-server", "--port", str(port), *stage.data, *CONFIG, *BENCHMARK)
    assert run.code == 1
    assert f"http://127.0.0.1:{port} does not answer as a server that is ready" in run.output
    assert "Traceback" not in run.output


def test_a_server_that_dies_under_the_matrix_fails_its_cell_and_the_next_ones_at_once(stage: Stage):
    with ScriptedServer(Script(faults=(Fault("exit", after=6),))) as server:
        lists = (*CONFIG, "--benchmark-list", "gsm8k:8", "mtbench:1")
        run = stage.pytest("bench_tests", "--base-url", server.base_url, *stage.data, *lists)
    assert run.code == 1
    assert f"the server at {server.base_url} is gone" in run.output
    assert {cell: record["status"] for cell, record in stage.records().items()} == {
        "2,0,0,0-gsm8k:8": "failed",
        "2,0,0,0-mtbench:1": "failed",
    }

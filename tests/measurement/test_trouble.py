"""A server that goes away in the middle: what was measured is kept, and the reason is one line."""

from __future__ import annotations

import _thread
import threading
from pathlib import Path

import pytest
import requests

from specforge.client.endpoint import Endpoint
from specforge.errors import ServerError
from specforge.measurement.cell import INTERRUPTED
from specforge.measurement.target import Target
from tests.measurement.cells import measure, questions, target
from tests.support.processes import wait_until
from tests.support.scripted import Fault, Script, Speculation
from tests.support.scripted_server import ScriptedServer


def test_a_server_that_dies_half_way_leaves_the_rows_that_had_landed(tmp_path: Path):
    script = Script(faults=(Fault("exit", containing="Question 4 "),), speculation=Speculation())
    with ScriptedServer(script) as server:
        record, rows = measure(server.base_url, questions(8), tmp_path, concurrency=1)
    assert record["status"] == "failed"
    assert server.base_url in str(record["reason"])
    assert [row["row_id"] for row in rows if row["status"] == "ok"] == [f"row-{at}" for at in range(4)]
    metrics = record["metrics"]
    assert metrics["acceptance_length"] > 1, "what does not depend on the window's end is kept"
    assert (metrics["output_throughput"], metrics["rounds"]) == (None, [])
    assert metrics["reasons"]["output_throughput"] == "no round was measured to its end"


def test_a_process_that_has_ended_is_told_with_its_own_words_before_anything_is_asked(tmp_path: Path):
    def ended() -> None:
        raise ServerError("the server of 1,3,1,4 exited with 9; its log ends: out of memory")

    with ScriptedServer() as server:
        probed = Target(Endpoint.parse(server.base_url), ended, None, request_timeout=5)
        before = len(server.requests)
        record, _ = measure(probed, questions(2), tmp_path)
        assert len(server.requests) == before
        probed.close()
    assert (record["status"], record["reason"]) == (
        "failed",
        "the server of 1,3,1,4 exited with 9; its log ends: out of memory",
    )


def test_an_interrupt_keeps_what_was_measured_and_aborts_what_runs(tmp_path: Path):
    """Ctrl-C while the fourth measured request runs: the seventh of all, after the probe and two warm-ups."""
    script = Script(faults=(Fault("slow", seconds=60, containing="Question 3 "),))
    with ScriptedServer(script) as server:

        def interrupt_when_the_last_request_runs() -> None:
            log = server.base_url + "/_script/log"
            wait_until(lambda: requests.get(log, timeout=5).json()["generations"] == 7, within=30)
            _thread.interrupt_main()

        presser = threading.Thread(target=interrupt_when_the_last_request_runs, daemon=True)
        presser.start()
        record, rows = measure(server.base_url, questions(4), tmp_path, concurrency=1)
        presser.join()
        aborted = [entry["request"]["rid"] for entry in server.requests if entry["path"] == "/abort_request"]
    assert (record["status"], record["reason"]) == ("partial", INTERRUPTED)
    assert [row["row_id"] for row in rows] == ["row-0", "row-1", "row-2"]
    assert len(aborted) == 1
    assert record["metrics"]["requests"] == 3


def test_a_server_that_is_none_is_refused_in_one_line():
    with (
        ScriptedServer(Script(faults=(Fault("status", status=500),))) as server,
        pytest.raises(ServerError, match="is no SGLang server: /v1/chat/completions answered 500"),
    ):
        target(server.base_url)

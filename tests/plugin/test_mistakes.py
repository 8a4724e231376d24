"""What a newcomer gets wrong that shows only once something is asked, loaded or written: each is told in one line.

The rest is in test_options: the order of options, a misspelt dataset, ``gsm8k:abc``, ``1,3,1``, a missing draft, a
folder that can't be written.
"""

from __future__ import annotations

import errno
import http.server
import shlex
import threading
from collections.abc import Iterator

import pytest

from tests.plugin.stage import Stage
from tests.support.processes import free_port, pytest_command, running
from tests.support.scripted_server import ScriptedServer

TARGET = ("--config-list", "1,0,0,0", "--benchmark-list")
NOISE = ("Traceback", "INTERNALERROR", "During handling", "the direct cause", "PytestBenchmarkWarning")


@pytest.fixture
def website() -> Iterator[str]:
    """The address of something that is no SGLang."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_no_server_a_wrong_port_and_no_permission_to_run_code_are_told_in_a_line(stage: Stage, website: str):
    nobody = f"http://127.0.0.1:{free_port()}"
    no_server, wrong_port, no_permission = stage.several(
        ["bench_tests", "--base-url", nobody, *TARGET, "gsm8k:2"],
        ["bench_tests", "--base-url", website, *TARGET, "gsm8k:2"],
        ["bench_tests", *TARGET, "humaneval:2", "--max-new-tokens", "8"],
    )
    refused = f"[Errno {errno.ECONNREFUSED}] Connection refused"
    for run, url, why in ((no_server, nobody, refused), (wrong_port, website, "/health answered 501")):
        assert run.code == 1
        expected = f"{url} does not answer as a server that is ready ({why}); expected a running SGLang there (--base-"
        assert sum(line.startswith(expected) for line in run.output.splitlines()) == 1
    assert no_permission.code == 0
    reason = "no accuracy: model-written code was not run; --allow-code-execution allows it"
    assert f"note: humaneval:2: {reason}" in no_permission.output.splitlines()
    assert [noise for run in (no_server, wrong_port, no_permission) for noise in NOISE if noise in run.output] == []


def test_no_network_and_a_full_disk_are_told_in_a_line(stage: Stage):
    """The Hub's address is one where nobody listens; files may grow to 8 KiB, less than the run's record has."""
    # Coverage of the tests, where it is measured, could not write its larger file either.
    uncovered = {"COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""}
    environment = {"HF_ENDPOINT": f"http://127.0.0.1:{free_port()}", **uncovered}
    with ScriptedServer() as server:
        arguments = ["bench_tests", "--base-url", server.base_url, *stage.data, *TARGET, "gsm8k:2", "simpleqa:2"]
        command = ["bash", "-c", f"ulimit -f 8; exec {shlex.join(pytest_command(*arguments))}"]
        with running(command, cwd=stage.folder, environment=environment) as program:
            assert program.wait(120) == 1, program.output
    lines = program.output.splitlines()
    hub = "simpleqa: basicv8vc/SimpleQA can't be loaded: the Hub can't be reached; check the network and HF_ENDPOINT"
    assert sum(line.startswith(hub) for line in lines) == 1
    (record,) = (line for line in lines if line.startswith("record: "))
    assert record.endswith(".json: can't be written: File too large; expected room there, or another --output-dir")
    assert [noise for noise in NOISE if noise in program.output] == []

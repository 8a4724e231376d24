"""Launching and ending the real SGLang."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest
import requests

from specforge.backends.flags import KnownFlags, probe_flags
from specforge.backends.launch import Launcher
from specforge.backends.options import LaunchOptions
from specforge.matrix import SpecConfig
from tests.support.processes import ROOT, in_session, mentioning, running, wait_until
from tests.support.sglang import SglangModels

pytestmark = pytest.mark.sglang

HARNESS = """
import signal, sys
from pathlib import Path
from specforge.backends.launch import Launcher
from specforge.backends.options import LaunchOptions
from specforge.matrix import SpecConfig
model, folder, *command = sys.argv[1:]
options = LaunchOptions(model_path=model, launch_command=tuple(command), log_dir=Path(folder), dtype="float32")
print("serving", Launcher(options).start(SpecConfig.parse("1,0,0,0")).base_url, flush=True)
signal.pause()
"""


def test_the_installed_version_is_asked_for_its_flags(sglang_launch_command: str):
    assert probe_flags(shlex.split(sglang_launch_command), {}) == KnownFlags("--cuda-graph-max-bs-decode")


def test_ngram_is_launched_recognised_and_ended_in_the_middle_of_a_request(
    sglang_launch_command: str, sglang_models: SglangModels, tmp_path: Path
):
    launcher = Launcher(
        LaunchOptions(
            model_path=str(sglang_models.target),
            launch_command=tuple(shlex.split(sglang_launch_command)),
            dtype="float32",
            log_dir=tmp_path,
        )
    )
    server = launcher.start(SpecConfig.parse("2,0,0,6"))
    with server:
        info = server.about.server_info
        assert info is not None
        assert (info["speculative_algorithm"], info["speculative_num_draft_tokens"]) == ("NGRAM", 6)
        assert info["internal_states"][0]["effective_max_running_requests_per_dp"] == 2
        busy = threading.Thread(target=_ask_for_much, args=(server.base_url,), daemon=True)
        busy.start()
        wait_until(lambda: "Prefill batch" in server.about.log.read_text(), within=60)  # type: ignore[union-attr]
        assert server.pid is not None
        assert len(in_session(server.pid)) > 1
    assert in_session(server.pid) == []
    busy.join(30)


def _ask_for_much(base_url: str) -> None:
    body = {"text": "one two three", "sampling_params": {"max_new_tokens": 8000, "ignore_eos": True}}
    try:
        requests.post(base_url + "/generate", json=body, timeout=120)
    except requests.RequestException:
        return  # it is ended meanwhile, which is what the test is about


def test_sglang_does_not_outlive_a_killed_harness(
    sglang_launch_command: str, sglang_models: SglangModels, tmp_path: Path
):
    command = [sys.executable, "-c", HARNESS, str(sglang_models.target), str(tmp_path)]
    command += shlex.split(sglang_launch_command)
    with running(command, cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)}) as harness:
        harness.wait_for_output("serving", within=590)
        port = harness.output.strip().rpartition(":")[2]
        (server,) = [found for found in mentioning(f"--port {port}") if found.pid == found.session]
        harness.send(signal.SIGKILL)
        harness.wait(10)
        wait_until(lambda: not in_session(server.pid), within=30)

"""A hundred thousand requests fit into little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.support.processes import ROOT, free_port, running, wait_until
from tests.support.scripted.script import Replies, Script, Speculation, dump

REQUESTS = 100_000
MEBIBYTE = 2**20
# The command's own peak, since a process's children are measured together with the largest of them.
COMMAND = """
import resource, sys
from specforge.cli import main
status = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
sys.exit(status)
"""


@pytest.mark.slow
def test_a_hundred_thousand_requests_hold_under_300_mb(tmp_path: Path) -> None:
    script = dump(
        Script(replies=Replies(tokens=(16, 16), alike=True), speculation=Speculation(), keep_log=False),
        tmp_path / "script.json",
    )
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = [sys.executable, str(ROOT / "tests" / "support" / "scripted_server.py"), "--script", str(script)]
    server += ["--port", str(port), "--speculative-algorithm", "EAGLE3"]
    record_path = tmp_path / "record.json"
    with running(server, cwd=ROOT, log=tmp_path / "server.log"):
        wait_until(lambda: _ready(url), within=60, what="the scripted server")
        command = [sys.executable, "-c", COMMAND, "benchmark", "--base-url", url, "--dataset", "gsm8k", "--samples"]
        command += ["--num-prompts", str(REQUESTS), "--concurrency", "64", "--output-json", str(record_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.rpartition("peak ")[2])
    record = json.loads(record_path.read_text(encoding="utf-8"))
    assert record["metrics"]["requests"] == REQUESTS
    assert peak < 300 * 10**6, f"{peak / MEBIBYTE:.0f} MiB"


def _ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/ready", timeout=5).status_code == 200
    except requests.RequestException:
        return False

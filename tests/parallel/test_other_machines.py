"""Workers on other machines: over ssh to this one, where an ssh server is installed, with rsync; through a proxy."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.stage import Stage
from tests.support.processes import ROOT, free_port, port_is_free, running, wait_until
from tests.support.scripted import Replies, Script

CONFIGS = ("1,0,0,0", "1,3,1,4")
LISTS = ("--config-list", *CONFIGS, "--benchmark-list", "gsm8k:4")
CELLS = [f"{config}-gsm8k:4" for config in CONFIGS]
SCRIPT = Script(replies=Replies(seed=3))
SSHD = shutil.which("sshd", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))


def check(stage: Stage, code: int, output: str) -> None:
    """Every cell is there with its rows, and the target-only cell of another worker was compared with."""
    assert code == 0, output
    records = stage.records()
    assert list(records) == CELLS
    assert [len(stage.rows(record)) for record in records.values()] == [4, 4]
    assert records[CELLS[1]]["metrics"]["lossless"]["identical_share"] == 1
    assert stage.servers() == []


def test_workers_behind_a_proxy_send_their_rows(stage: Stage):
    """The controller takes a gateway behind a gateway for another machine, so it shares no folder with it."""
    if not hasattr(pytest.importorskip("xdist.workermanage").NodeManager, "_getpxspecs"):
        pytest.skip("this version of pytest-xdist has no --px")
    proxied = ["--dist", "load"]
    for name in ("p", "q"):
        proxied += ["--px", f"id={name}//popen", "--tx", f"popen//via={name}"]
    run = stage.pytest("bench_tests", *stage.launching(SCRIPT), *LISTS, *proxied)
    check(stage, run.code, run.output)


@pytest.fixture
def ssh_config(tmp_path: Path) -> Iterator[Path]:
    """An ssh server of our own on a loopback port: what a client's ``-F`` takes to reach it as ``here``."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("no ssh server is installed")
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(generate, check=True, stdin=subprocess.DEVNULL)
    port = free_port()
    server = f"""
        ListenAddress 127.0.0.1
        Port {port}
        HostKey {folder / "host"}
        AuthorizedKeysFile {folder / "user.pub"}
        PasswordAuthentication no
        StrictModes no
        UsePAM no
        PermitRootLogin yes
        PidFile {folder / "pid"}
    """
    client = f"""
        Host here
        HostName 127.0.0.1
        Port {port}
        User {getpass.getuser()}
        IdentityFile {folder / "user"}
        IdentitiesOnly yes
        StrictHostKeyChecking no
        UserKnownHostsFile {folder / "known"}
        LogLevel ERROR
    """
    (folder / "sshd_config").write_text(server, encoding="utf-8")
    (folder / "config").write_text(client, encoding="utf-8")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it for its unprivileged part
    command = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    with running(command, cwd=folder) as program:
        wait_until(lambda: not port_is_free(port) or program.process.poll() is not None, within=20, what="sshd listens")
        if program.process.poll() is not None:
            pytest.skip(f"sshd does not run here: {program.output.strip()[-200:]}")
        yield folder / "config"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_machines_over_ssh(stage: Stage, ssh_config: Path):
    """The recipe of docs/scale.md, with one machine playing two. Only bench_tests is sent: the package is there."""
    remote = [f"ssh=-F {ssh_config} here//python={sys.executable}//chdir={stage.folder / name}" for name in ("a", "b")]
    run = stage.pytest(
        *("-d", "--rsyncdir", str(stage.folder / "bench_tests"), *(f"--tx={spec}" for spec in remote)),
        *(str(stage.folder / "bench_tests"), *stage.launching(SCRIPT), *LISTS),
        environment={"PYTHONPATH": str(ROOT)},
    )
    check(stage, run.code, run.output)
    for name in ("a", "b"):
        assert (stage.folder / name / "bench_tests" / "test_benchmark.py").is_file()
        assert list((stage.folder / name / "results").glob("*/logs/server-*.log"))

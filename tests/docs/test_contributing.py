"""CONTRIBUTING.md's examples: carried out in a copy of the tree, in order, as a reader would."""

from __future__ import annotations

import doctest
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.markdown import Block, blocks
from tests.support.processes import ROOT, outer_pytest_removed, wait_until
from tests.support.scripted import Script
from tests.support.scripted.script import ALWAYS, Start
from tests.support.scripted_server import ScriptedServer

PROGRAMS = {"specforge": ["-m", "specforge.cli"], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}
PORT = 30000


def examples() -> list[Block]:
    """The blocks from the first "Adding" on; those before it set up the checkout."""
    found = list(blocks(ROOT / "CONTRIBUTING.md"))
    return found[next(at for at, block in enumerate(found) if block.named_file.endswith("svamp.py")) :]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What the examples need of the checkout, to change as one likes."""
    for name in ("specforge", "bench_tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pytest.ini"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def carry_out(block: Block, folder: Path, port: int = PORT) -> None:
    """Applies a patch, runs commands and compares what they print, or writes the file that the text names."""
    if block.language == "diff":
        applied = run(["git", "apply", "-"], folder, text=block.text)
        assert applied.returncode == 0, f"{block.place}: {applied.stdout}"
    elif block.language == "console":
        expected = block.text.partition("\n")[2]
        (command,) = block.commands
        program, *arguments = shlex.split(command.replace(f":{PORT}", f":{port}"))
        ran = run([sys.executable, *PROGRAMS[program], *arguments], folder)
        assert ran.returncode == 0, f"{block.place}: {ran.stdout}"
        same = doctest.OutputChecker().check_output(expected, ran.stdout, doctest.ELLIPSIS)
        assert same, f"{block.place}: it printed\n{ran.stdout}"
    else:
        assert block.named_file, f"{block.place}: which file is this?"
        (folder / block.named_file).write_text(block.text, encoding="utf-8")


def run(command: list[str], folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**outer_pytest_removed(), "PYTHONPATH": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )


def let_in_after_a_refusal(server: ScriptedServer) -> None:
    wait_until(
        lambda: ("/ready", 503) in asked(server), within=100, what="the backend asks whether the server is ready"
    )
    server.become_ready()


def asked(server: ScriptedServer) -> list[tuple[str, int]]:
    return [(entry["path"], entry["status"]) for entry in server.requests]


@pytest.mark.slow
def test_a_dataset_a_scorer_and_a_backend_are_added_as_contributing_says(copy: Path):
    *additions, measurement = examples()
    for block in additions:
        carry_out(block, copy)
    with ScriptedServer(Script(start=Start(ready_after=ALWAYS))) as server, ThreadPoolExecutor(1) as thread:
        letting_in = thread.submit(let_in_after_a_refusal, server)
        carry_out(measurement, copy, port=server.port)
        letting_in.result()
        assert ("/v1/chat/completions", 200) in asked(server)

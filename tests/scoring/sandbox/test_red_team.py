"""No hostile program passes, gets out, outlives its test or harms the run."""

from __future__ import annotations

import secrets
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from specforge.scoring.code.programs import job_of
from specforge.scoring.code.tasks import HumanEvalTask, IoTest, LiveCodeTask
from specforge.scoring.sandbox.pool import run_jobs
from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.sandbox.worker import Sandbox
from tests.scoring.sandbox.hostile import HOSTILE, QUICK
from tests.support.processes import mentioning, wait_until

TASK = HumanEvalTask(
    prompt='from typing import List\n\ndef running_total(values: List[int]) -> List[int]:\n    """Sums so far."""\n',
    test="def check(candidate):\n    assert candidate([1, 2, 3]) == [1, 3, 6]\n    assert candidate([]) == []\n"
    "    assert candidate([-1, 1]) == [-1, 0]\n",
    entry_point="running_total",
)
HONEST = """
def running_total(values):
    out, total = [], 0
    for value in values:
        total += value
        out.append(total)
    return out
"""
SETTINGS = SandboxSettings(wall_s=2, memory_mb=256, scratch_mb=16, output_mb=4, workers=1)

slow_ones = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in HOSTILE]


class Outside:
    """The world around a sandbox, and what a program did to it."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.token = f"redteam{secrets.token_hex(6)}"
        self.temporary = folder / "temporary"
        self.open_to_all = folder / "open"
        self._listener = listener
        self.temporary.mkdir(mode=0o755)
        self.open_to_all.mkdir()
        self.open_to_all.chmod(0o777)
        (self.open_to_all / "secret").write_text("do not read")

    def armed(self, program: str) -> str:
        """The program, with this world's names put in."""
        port = self._listener.getsockname()[1]
        texts = {"@TOKEN@": self.token, "@OUTSIDE@": str(self.open_to_all), "@PORT@": str(port)}
        for name, text in texts.items():
            program = program.replace(name, text)
        return program

    def was_reached(self) -> bool:
        """Whether somebody connected to the listener."""
        self._listener.settimeout(0)
        try:
            self._listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def left_files(self) -> list[str]:
        """What lies where nothing should: in the folder open to all, the temporary folder, and the usual places."""
        found = [str(path) for path in self.temporary.rglob("*")]
        found += [str(path) for path in self.open_to_all.iterdir() if path.name != "secret"]
        places = (
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            str(Path.home()),
            "/home",
            "/",
            "/usr",
            str(Path(tempfile.__file__).parent),
        )
        return found + [place for place in places if (Path(place) / self.token).exists()]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A world of this test's own; the sandbox's folders are made in its temporary folder."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.owner() == Path(tempfile.gettempdir()).owner() and str(parent).startswith(
            tempfile.gettempdir() + "/"
        ):
            parent.chmod(0o755)  # pytest's folders are the user's alone, which is not what is tested
    with socket.create_server(("127.0.0.1", 0)) as listener:
        world = Outside(tmp_path, listener)
        monkeypatch.setenv("SPECFORGE_RED_TEAM", world.token)
        monkeypatch.setattr(tempfile, "tempdir", str(world.temporary))
        yield world


@pytest.mark.parametrize("name", slow_ones)
def test_a_hostile_program_neither_passes_nor_leaves_a_trace(kind: str, name: str, outside: Outside) -> None:
    jobs = [job_of(TASK, outside.armed(HOSTILE[name])), job_of(TASK, HONEST)]

    hostile, honest = run_jobs(kind, SETTINGS, jobs)

    assert hostile["passed"] is False
    assert "BREACH" not in hostile["reason"]
    assert "the sandbox failed" not in hostile["reason"]
    assert honest["passed"] is True, honest["reason"]
    assert not outside.was_reached()
    assert outside.left_files() == []
    wait_until(lambda: not mentioning(outside.token), within=5, what="the program's processes to be gone")


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_script_does_not_pass_for_its_output(kind: str, name: str, outside: Outside) -> None:
    task = LiveCodeTask(tests=(IoTest("1 2 3\n", "1 3 6\n"),))

    (verdict,) = run_jobs(kind, SETTINGS, [job_of(task, outside.armed(HOSTILE[name]))])

    assert verdict["passed"] is False
    assert "BREACH" not in verdict["reason"]
    assert outside.left_files() == []
    wait_until(lambda: not mentioning(outside.token), within=5, what="the program's processes to be gone")


LEAVES = """
import os, sys, tempfile
for folder in {os.environ["TMPDIR"], os.getcwd(), tempfile.gettempdir()}:
    open(os.path.join(folder, "answers"), "w").write("[1, 3, 6]")
sys.modules["typing"].answers = [1, 3, 6]
"""
LOOKS = """
import os, sys
print(os.listdir(os.environ["TMPDIR"]), os.listdir("."), hasattr(sys.modules["typing"], "answers"))
"""


def test_nothing_of_a_program_is_there_for_the_next(kind: str) -> None:
    looking = LiveCodeTask((IoTest("", "[] [] False"),))

    _, second = run_jobs(kind, SETTINGS, [job_of(TASK, LEAVES), job_of(looking, LOOKS)])

    assert second["passed"] is True, second


def test_a_time_limit_costs_what_it_says(kind: str) -> None:
    endless = job_of(TASK, HOSTILE["a loop without end"])

    (verdict,) = run_jobs(kind, SETTINGS, [endless])

    assert verdict["reason"] == "longer than 2 s"
    assert 2 <= verdict["wall_s"] < 3.5


def test_the_sandbox_ends_when_nobody_holds_its_pipe(kind: str) -> None:
    sandbox = Sandbox(kind, SETTINGS)
    sandbox.start()
    process = sandbox._process
    assert process is not None
    assert process.stdin is not None

    process.stdin.close()

    assert process.wait(timeout=10) == 0
    sandbox.close()

"""No hostile program passes, gets out, outlives its test or harms the run."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specforge.scoring.code.programs import job_of
from specforge.scoring.code.tasks import HumanEvalTask, IoTest, LiveCodeTask
from specforge.scoring.sandbox.pool import run_jobs
from specforge.scoring.sandbox.settings import SandboxSettings
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
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(
                folder.stat().st_mode | 0o055
            )  # pytest's folders are the user's alone, which is not tested here
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


FOLDERS = """
import os, sys, tempfile
folders = {os.environ["TMPDIR"], os.getcwd(), tempfile.gettempdir(), "/dev/shm", "/dev/mqueue", "/run", "/var/tmp"}
for parent in ("/", "/dev", "/proc", "/tmp", "/work", "/root"):
    try: folders |= {parent, *(os.path.join(parent, name) for name in os.listdir(parent))}
    except OSError: pass
"""
LEAVES = f"""{FOLDERS}
for folder in folders:
    try:
        with open(os.path.join(folder, "answers-@TOKEN@"), "w") as file: file.write("[1, 3, 6]")
    except OSError: pass
sys.modules["typing"].answers = [1, 3, 6]
"""
LOOKS = f"""{FOLDERS}
found = [folder for folder in folders if os.path.exists(os.path.join(folder, "answers-@TOKEN@"))]
print(found, os.listdir(os.environ["TMPDIR"]), hasattr(sys.modules["typing"], "answers"))
"""


def test_nothing_of_a_program_is_there_for_the_next(kind: str, outside: Outside) -> None:
    looking = LiveCodeTask((IoTest("", "[] [] False"),))
    jobs = [job_of(TASK, outside.armed(LEAVES)), job_of(looking, outside.armed(LOOKS))]

    _, second = run_jobs(kind, SETTINGS, jobs)

    assert second["passed"] is True, second


def test_a_time_limit_costs_what_it_says(kind: str) -> None:
    endless = job_of(TASK, HOSTILE["a loop without end"])

    (verdict,) = run_jobs(kind, SETTINGS, [endless])

    assert verdict["reason"] == "longer than 2 s"
    assert 2 <= verdict["wall_s"] < 3.5


HOST = """
import sys
from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.sandbox.worker import Sandbox
sandbox = Sandbox(sys.argv[1], SandboxSettings(wall_s=600))
sandbox.start()
print("started", flush=True)
sandbox.run({"way": "script", "source": sys.argv[2], "tests": [{"input": "", "output": ""}]})
"""
LINGERS = """
import os, sys, time
if os.fork() == 0: os.setsid()
with open(os.environ["TMPDIR"] + "/alive", "w"): pass
os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)", "@TOKEN@"])
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_program(kind: str, sent: signal.Signals, outside: Outside) -> None:
    token = f"lingers{secrets.token_hex(6)}"
    command = [sys.executable, "-c", HOST, kind, LINGERS.replace("@TOKEN@", token)]
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(outside.temporary)}, stdout=subprocess.PIPE
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"started\n"
        wait_until(lambda: len(mentioning(token)) > 1, within=20, what="the program to run")

        host.send_signal(sent)

    wait_until(lambda: not mentioning(token), within=10, what="the program's processes to be gone")


def test_an_interrupted_run_leaves_nothing(kind: str, outside: Outside) -> None:
    endless = job_of(TASK, outside.armed("import time\ntime.sleep(600)"))
    settings = replace(SETTINGS, wall_s=60, workers=2)
    # a run in the background of a shell ignores Ctrl-C
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        try:
            wait_until(lambda: len(list(outside.temporary.iterdir())) == 2, within=20, what="both sandboxes to start")
        finally:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    try:
        watcher.start()
        with pytest.raises(KeyboardInterrupt):
            run_jobs(kind, settings, [endless] * 4)
        watcher.join()
    finally:
        signal.signal(signal.SIGINT, before)

    assert outside.left_files() == []

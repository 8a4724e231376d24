"""What runs inside a sandbox, started directly: jobs in, verdicts out, nothing left in the scratch folder.

The harness starts it with a bare interpreter and a fixed environment, where no coverage is measured. Whether anything
gets out of it is the red team's to find out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from specforge.scoring.code.programs import job_of
from specforge.scoring.code.tasks import CodeTask, IoTest, LiveCodeTask
from specforge.scoring.sandbox import interpreter
from specforge.scoring.sandbox.guest.plan import Limits, Plan
from specforge.scoring.sandbox.guest.wire import read_frame, write_frame

LIMITS = Limits(wall_s=2, memory=512 << 20, processes=8, output=1 << 20, scratch=8 << 20)
NOBODY = 0x60000000
DOUBLED = LiveCodeTask(tests=(IoTest("2", "4"),), func_name="double")
ECHOED = LiveCodeTask(tests=(IoTest("a\n", "a"), IoTest("b\n", "b")))


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """Where programs write, in a folder that another user may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="specforge-guest-"))
    folder.chmod(0o711)
    (folder / "root").mkdir()
    yield folder / "root"
    shutil.rmtree(folder)


class Guest:
    """A guest that waits for jobs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def says(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        frame = read_frame(lambda size: os.read(descriptor, size))
        assert frame is not None, "the guest ended"
        return dict(json.loads(frame))

    def verdict(self, task: CodeTask, source: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        job = {**job_of(task, source), "limits": asdict(LIMITS)}
        write_frame(self._process.stdin.fileno(), json.dumps(job).encode())
        return self.says()


@pytest.fixture(scope="module")
def guest(scratch: Path) -> Iterator[Guest]:
    readable, site = interpreter.readable_paths(), interpreter.site_folders()
    plan = Plan(build_root=False, inner=False, readable=readable, scratch=str(scratch), site=site, uid=NOBODY)
    command = [sys.executable, "-c", interpreter.BOOT, str(interpreter.GUEST.parent), json.dumps(plan.as_document())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", bufsize=0) as process:
        started = Guest(process)
        assert "powers" in started.says()
        yield started
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


RIGHT: list[tuple[CodeTask, str]] = [
    (DOUBLED, "def double(x):\n    return 2 * x\n"),
    (DOUBLED, "open('left', 'w').write('x')\nimport os\nos.makedirs('a/b')\ndef double(x):\n    return 2 * x\n"),
    (ECHOED, "print(input())\n"),
]
WRONG: list[tuple[CodeTask, str, str]] = [
    (DOUBLED, "def double(x):\n    return x\n", "assert 1 failed"),
    (DOUBLED, "def double(x):\n    while True: pass\n", "longer than 2 s"),
    (DOUBLED, "import os\nos.abort()\n", "the program ended"),
    (DOUBLED, "def double(x):\n    return bytes(900 << 20)\n", "MemoryError"),
    (
        DOUBLED,
        "import os\nfor n in range(9): open(str(n), 'wb').write(bytes(1 << 20))\nimport time\ntime.sleep(9)",
        "MiB",
    ),
    (ECHOED, "print('a')\n", "test 2: the output is another"),
    (ECHOED, "print('a' * (2 << 20))\n", "more than 1 MiB of output"),
    (ECHOED, "import sys\nsys.exit('no')\n", "test 1: the program ended with status 1"),
    (ECHOED, "1 / 0\n", "ZeroDivisionError"),
    (ECHOED, "input()\ninput()\n", "EOFError"),
]


@pytest.mark.parametrize("task, source", RIGHT, ids=range(len(RIGHT)))
def test_a_right_program_passes_and_leaves_no_files(guest: Guest, scratch: Path, task: CodeTask, source: str):
    verdict = guest.verdict(task, source)
    assert verdict["passed"], verdict
    assert not os.listdir(scratch)


@pytest.mark.parametrize("task, source, reason", WRONG, ids=range(len(WRONG)))
def test_a_wrong_program_fails_and_the_next_one_is_judged_by_itself(
    guest: Guest, scratch: Path, task: CodeTask, source: str, reason: str
):
    verdict = guest.verdict(task, source)
    assert not verdict["passed"]
    assert reason in verdict["reason"], verdict
    assert guest.verdict(*RIGHT[0])["passed"]
    assert not os.listdir(scratch)

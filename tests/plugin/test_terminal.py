"""What a run shows: a bar where a person looks on, and none where nobody does."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import termios

from tests.plugin.stage import Stage
from tests.support.processes import outer_pytest_removed, pytest_command
from tests.support.scripted import Pace, Script
from tests.support.scripted_server import ScriptedServer


def at_a_terminal(stage: Stage, *arguments: str) -> str:
    """All that pytest shows at a terminal of its own."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))  # rows and columns
    environment = {**outer_pytest_removed(), "TERM": "xterm", "COLUMNS": "200"}
    command = pytest_command(*arguments)
    with subprocess.Popen(command, cwd=stage.folder, env=environment, stdin=its, stdout=its, stderr=its) as program:
        os.close(its)
        shown = b""
        try:
            while some := os.read(ours, 65536):
                shown += some
        except OSError:  # so Linux says that nobody writes any more
            os.close(ours)
    assert program.returncode == 0, shown.decode()
    return shown.decode()


def test_the_bar_is_for_terminals_and_stays_out_of_logs_and_of_q(stage: Stage):
    """Slow enough for a bar, which shows at most four times a second."""
    with ScriptedServer(Script(pace=Pace(per_request=0.15))) as server:
        matrix = [
            *("bench_tests", "--base-url", server.base_url, *stage.data),
            *("--config-list", "2,0,0,0", "--benchmark-list", "gsm8k:8"),
        ]
        terminal, quiet = at_a_terminal(stage, *matrix), at_a_terminal(stage, "-q", *matrix)
        log = stage.pytest(*matrix)
    bar = "test_benchmark[2,0,0,0-gsm8k:8]: "
    assert bar in terminal
    assert "tok/s" in terminal.partition("= specforge")[0]
    assert bar not in quiet
    assert bar not in log.output
    assert "specforge: 1 configuration x 1 benchmark," in log.output

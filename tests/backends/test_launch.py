"""Launching real processes: scripted servers that start, stall, die and lie."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from specforge.backends.launch import LaunchedServer, Launcher
from specforge.backends.options import LaunchOptions
from specforge.errors import ServerError, UsageError
from specforge.matrix import SpecConfig
from tests.support.processes import ROOT, free_port, in_session, mentioning, port_is_free, running, wait_until
from tests.support.scripted import Script, Start, Wire
from tests.support.scripted.script import dump
from tests.support.scripted_server import ScriptedServer

TARGET = SpecConfig.parse("2,0,0,0")
CHAIN = SpecConfig.parse("1,3,1,4")
NEVER = 10**6
SCRIPTED = ROOT / "tests" / "support" / "scripted_server.py"
# Accepts connections and never says a word.
MUTE = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
held = []
while True:
    held.append(listener.accept())
"""


# Says that it is ready, and dies when asked what it is.
SHORT_LIVED = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/server_info":
            print("the weights are corrupt", flush=True)
            os._exit(9)
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


class Stage:
    """A folder in which a test's scripted servers find their script and leave their log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script_log = folder / "requests.jsonl"
        self.script_file = folder / "script.json"

    def options(self, script: Script | None = None, **given: Any) -> LaunchOptions:
        dump(script or Script(), self.script_file)
        files = ("--script", str(self.script_file), "--script-log", str(self.script_log))
        defaults = {
            "model_path": "org/model",
            "speculative_draft_model_path": "org/draft",
            "launch_command": (sys.executable, str(SCRIPTED), *files),
            "log_dir": self.folder / "logs",
            "timeout_for_server_launch": 60.0,
        }
        return LaunchOptions(**{**defaults, **given})

    def start(self, config: SpecConfig, script: Script | None = None, **given: Any) -> LaunchedServer:
        return Launcher(self.options(script, **given)).start(config)

    def starts(self) -> list[list[str]]:
        """The arguments of every scripted server that was started."""
        if not self.script_log.exists():
            return []
        entries = [json.loads(line) for line in self.script_log.read_text().splitlines()]
        return [entry["argv"] for entry in entries if entry.get("event") == "start"]

    def left_over(self) -> list[Any]:
        """Processes whose command line holds this test's folder."""
        return mentioning(str(self.script_file))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_started_server_is_ready_and_says_what_it_runs(stage: Stage):
    with stage.start(CHAIN) as server:
        assert requests.get(server.base_url + "/ready", timeout=5).status_code == 200
        info = server.about.server_info
        assert info is not None
        assert (info["speculative_algorithm"], info["speculative_num_steps"]) == ("EAGLE3", 3)
        assert server.about.model_info is not None
        assert server.about.model_info["model_path"] == "org/model"
        assert server.about.started_in is not None
        server.check_alive()


def test_a_stopped_server_leaves_no_process_and_a_free_port(stage: Stage):
    server = stage.start(TARGET, Script(start=Start(children=2)))
    assert server.pid is not None
    assert len(in_session(server.pid)) == 3
    server.stop()
    assert in_session(server.pid) == []
    assert port_is_free(int(server.base_url.rpartition(":")[2]))


def test_one_launcher_serves_configuration_after_configuration_on_the_same_port(stage: Stage):
    port = free_port()
    launcher = Launcher(stage.options(port=port))
    for config in (CHAIN, SpecConfig.parse("2,0,0,8")):
        with launcher.start(config) as server:
            assert server.base_url == f"http://127.0.0.1:{port}"
    assert len(stage.starts()) == 2


def test_health_which_costs_a_token_is_asked_once(stage: Stage):
    with stage.start(TARGET):
        paths = [json.loads(line).get("path") for line in stage.script_log.read_text().splitlines()]
        assert paths.count("/health") == 1


def test_a_port_taken_by_a_stale_server_is_refused_before_anything_starts(stage: Stage):
    with ScriptedServer(Script(model="org/model")) as stale:
        port = int(stale.base_url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"--port: {port} on 127.0.0.1 is taken"):
            stage.start(TARGET, port=port)
        assert stage.starts() == []
        assert [entry["path"] for entry in stale.requests] == []


def test_a_child_that_dies_at_start_is_told_with_the_end_of_its_log(stage: Stage):
    script = Script(start=Start(exit_code=3, log_lines=("loading weights", "CUDA out of memory")))
    with pytest.raises(ServerError, match=r"(?s)2,0,0,0 exited with 3 before it was ready.*CUDA out of memory"):
        stage.start(TARGET, script)


def test_a_child_that_dies_just_after_it_was_ready_is_told_with_the_end_of_its_log(stage: Stage):
    with pytest.raises(ServerError, match=r"(?s)exited with 9 just after it was ready.*the weights are corrupt"):
        stage.start(TARGET, launch_command=(sys.executable, "-c", SHORT_LIVED))


def test_a_launch_command_that_does_not_exist_is_named(stage: Stage):
    with pytest.raises(ServerError, match="could not be started: /no/such/server: No such file"):
        stage.start(TARGET, launch_command=("/no/such/server",))


def test_a_slow_start_reports_the_last_line_of_its_log(stage: Stage):
    # The server goes on only once its line has been reported, so the test's outcome doesn't hang on the clock.
    seen = stage.folder / "seen"
    loading = (
        "import os, runpy, sys, time\n"
        "print('loading 40 %\\rloading 80 %', flush=True)\n"
        f"while not os.path.exists({str(seen)!r}): time.sleep(0.01)\n"
        f"runpy.run_path({str(SCRIPTED)!r}, run_name='__main__')"
    )
    said: list[float] = []

    def hear(seconds: float, line: str) -> None:
        said.append(seconds)
        if line == "loading 80 %":
            seen.touch()

    command = (sys.executable, "-c", loading, *stage.options().launch_command[2:])
    with Launcher(stage.options(launch_command=command)).start(TARGET, hear):
        assert seen.exists()
        assert said == sorted(said)


def test_a_server_that_is_not_ready_in_time_is_ended(stage: Stage):
    script = Script(start=Start(ready_after=NEVER))
    with pytest.raises(
        ServerError, match=r"--timeout-for-server-launch: the server of 2,0,0,0 was not ready after 1.5 s"
    ):
        stage.start(TARGET, script, timeout_for_server_launch=1.5)
    assert stage.left_over() == []


def test_a_server_that_hangs_is_ended_at_the_time_limit(stage: Stage):
    command = (sys.executable, "-c", MUTE, str(stage.script_file))
    with pytest.raises(ServerError, match="--timeout-for-server-launch"):
        stage.start(TARGET, launch_command=command, timeout_for_server_launch=1.5)
    assert stage.left_over() == []


@pytest.mark.parametrize(
    "reported, found",
    [
        ({"speculative_num_steps": 5}, "speculative_num_steps: 5, asked 3"),
        ({"model_path": "org/stale"}, "model_path: 'org/stale', asked 'org/model'"),
    ],
)
def test_a_server_that_is_not_what_was_asked_for_is_refused_and_ended(
    stage: Stage, reported: dict[str, Any], found: str
):
    with pytest.raises(ServerError, match=f"is not what 1,3,1,4 asked for: {found}"):
        stage.start(CHAIN, Script(wire=Wire(server_info=reported)))
    assert stage.left_over() == []


def test_a_server_that_says_nothing_about_itself_is_refused(stage: Stage):
    script = Script(wire=Wire(missing=("/server_info", "/get_server_info")))
    with pytest.raises(ServerError, match="serves no /server_info"):
        stage.start(TARGET, script)


def test_an_older_server_without_ready_is_waited_for_through_health(stage: Stage):
    with stage.start(TARGET, Script(wire=Wire(missing=("/ready",)), start=Start(ready_after=0.5))) as server:
        assert requests.get(server.base_url + "/health", timeout=5).status_code == 200


def test_a_wrong_guess_of_a_flags_name_is_tried_once_more_and_remembered(stage: Stage):
    launcher = Launcher(stage.options(Script(wire=Wire(version="0.5.10"))))
    launcher.start(TARGET).stop()
    launcher.start(TARGET).stop()
    assert len(stage.starts()) == 2
    assert all("--cuda-graph-max-bs" in argv for argv in stage.starts())


def test_another_usage_error_is_not_tried_again(stage: Stage):
    script = Script(start=Start(exit_code=2, log_lines=("error: unrecognized arguments: --bogus",)))
    with pytest.raises(ServerError, match=r"(?s)exited with 2.*unrecognized arguments: --bogus"):
        stage.start(TARGET, script)
    assert len(stage.starts()) == 1


def test_a_server_killed_while_in_use_is_told_with_the_end_of_its_log(stage: Stage):
    with stage.start(TARGET, Script(start=Start(log_lines=("the last words",)))) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)

        def gone() -> str:
            try:
                server.check_alive()
            except ServerError as error:
                return str(error)
            return ""

        text = wait_until(gone, within=10)
    assert "2,0,0,0 was ended by signal 9 while it was in use" in text
    assert "the last words" in text


def test_an_interrupted_start_leaves_no_server(stage: Stage):
    def interrupt(_seconds: float, line: str) -> None:
        if "loading" in line:
            raise KeyboardInterrupt

    launcher = Launcher(stage.options(Script(start=Start(bind_after=NEVER, log_lines=("loading",)))))
    with pytest.raises(KeyboardInterrupt):
        launcher.start(TARGET, interrupt)
    assert stage.left_over() == []


def test_a_server_with_a_key_is_asked_with_it_and_the_key_is_shown_nowhere(stage: Stage):
    with stage.start(TARGET, api_key="very-secret") as server:
        assert server.endpoint.headers() == {"Authorization": "Bearer very-secret"}
        assert server.about.log is not None
        assert "--api-key '***'" in server.about.log.read_text()
        assert "very-secret" not in server.about.log.read_text()
        assert "very-secret" not in repr(server.about)


def test_logs_are_kept_by_configuration(stage: Stage):
    launcher = Launcher(stage.options(launch_command=(sys.executable, "-c", "raise SystemExit('no')")))
    for config in (TARGET, CHAIN):
        with pytest.raises(ServerError, match="exited with 1"):
            launcher.start(config)
    assert sorted(path.name for path in (stage.folder / "logs").iterdir()) == [
        "server-1,3,1,4.log",
        "server-2,0,0,0.log",
    ]


def test_the_server_gets_the_variables_of_its_share(stage: Stage):
    code = "import os; print('sees', os.environ['CUDA_VISIBLE_DEVICES'])"
    with pytest.raises(ServerError, match="sees 2,3"):
        stage.start(TARGET, launch_command=(sys.executable, "-c", code), environment={"CUDA_VISIBLE_DEVICES": "2,3"})


def test_a_port_that_stays_taken_after_the_stop_is_an_error_that_names_the_stop_command(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("specforge.backends.launch._RELEASE_SECONDS", 0.2)
    server = stage.start(TARGET)
    port = int(server.base_url.rpartition(":")[2])
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    # What a container would do: serve on, out of the launch command's reach.
    wait_until(lambda: port_is_free(port), within=10)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ServerError, match="--stop-command"):
        server.stop()


HARNESS = """
import sys, signal
from pathlib import Path
from specforge.backends.launch import Launcher
from specforge.backends.options import LaunchOptions
from specforge.matrix import SpecConfig
options = LaunchOptions(model_path="m", launch_command=tuple(sys.argv[2:]), log_dir=Path(sys.argv[1]))
server = Launcher(options).start(SpecConfig.parse("1,0,0,0"))
print("serving", server.base_url, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_harness_leaves_no_server(stage: Stage, tmp_path: Path, number: signal.Signals):
    command = stage.options(Script(start=Start(children=1))).launch_command
    program = [sys.executable, "-c", HARNESS, str(tmp_path / "logs"), *command]
    with running(program, cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)}) as harness:
        harness.wait_for_output("serving", within=60)
        (server,) = [found for found in stage.left_over() if found.pid == found.session and "--port" in found.command]
        assert len(in_session(server.pid)) == 2
        harness.send(number)
        harness.wait(10)
        wait_until(lambda: not in_session(server.pid), within=15)


@pytest.mark.slow
def test_a_server_that_ignores_sigterm_is_killed_after_five_seconds(stage: Stage):
    server = stage.start(TARGET, Script(start=Start(ignores_sigterm=True)))
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began >= 5
    assert stage.left_over() == []

"""Design section 5 with pytest itself as a program: servers that die, hang and babble, a pytest that is killed."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
from collections.abc import Callable

import pytest

from specforge.datasets import LoadOptions, load
from specforge.matrix import BenchmarkSpec
from tests.plugin.stage import Stage
from tests.support.processes import Running, wait_until
from tests.support.scripted import Fault, Pace, Replies, Script, Start, Wire
from tests.support.scripted.script import Scene
from tests.support.scripted_server import ScriptedServer

LISTS = ("--config-list", "1,0,0,0", "1,3,1,4", "--benchmark-list", "gsm8k:3", "mtbench:2")
TARGET_CELLS = ["1,0,0,0-gsm8k:3", "1,0,0,0-mtbench:2"]
CHAIN_CELLS = ["1,3,1,4-gsm8k:3", "1,3,1,4-mtbench:2"]
LOG_LINES = ("loading weights", "CUDA out of memory, so they say")
SPECULATIVE = {"--speculative-algorithm": "EAGLE3"}


def failures(output: str) -> dict[str, str]:
    """Each failed item's text, by test id."""
    report = output.partition("= FAILURES =")[2].partition("= specforge =")[0].partition("short test summary")[0]
    parts = re.split(r"^_+ test_benchmark\[(.+)\] _+$", report, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def statuses(stage: Stage) -> dict[str, str]:
    """The status of every record that was kept."""
    return {cell: record["status"] for cell, record in stage.records().items()}


def test_a_server_that_dies_at_its_start_fails_its_own_cells_with_its_last_words(stage: Stage):
    dying = Scene(Script(start=Start(exit_code=3, log_lines=LOG_LINES)), SPECULATIVE)
    run = stage.pytest("bench_tests", *stage.launching(dying, Script()), *LISTS)
    assert run.code == 1
    assert statuses(stage) == dict.fromkeys(TARGET_CELLS, "ok")
    found = failures(run.output)
    assert list(found) == CHAIN_CELLS
    for text in found.values():
        assert text.startswith("the server of 1,3,1,4 exited with 3 before it was ready")
        assert all(line in text for line in LOG_LINES)
        assert "Traceback" not in text
    assert len(stage.starts()) == 2, "one that won't start is not started again for each of its cells"
    assert stage.servers() == []


def test_a_server_that_dies_in_the_middle_fails_its_cells_and_the_run_goes_on(stage: Stage):
    """The target's server dies at the second measured question: the cell keeps what it had."""
    dying = Script(
        faults=(Fault("exit", status=7, after=5),),
        start=Start(log_lines=LOG_LINES, children=1),
        replies=Replies(seed=1),
    )
    scenes = (Scene(Script(), SPECULATIVE), dying)
    run = stage.pytest("bench_tests", *stage.launching(*scenes), *LISTS)
    assert run.code == 1
    assert statuses(stage) == {**dict.fromkeys(TARGET_CELLS, "failed"), **dict.fromkeys(CHAIN_CELLS, "ok")}
    found = failures(run.output)
    assert list(found) == TARGET_CELLS
    for text in found.values():
        assert text.startswith("the server of 1,0,0,0 exited with 7 while it was in use")
        assert all(line in text for line in LOG_LINES)
    kept = stage.records()[TARGET_CELLS[0]]
    assert 0 < kept["metrics"]["requests"] < 3
    assert len(stage.rows(kept)) == kept["metrics"]["requests"]
    assert kept["metrics"]["output_throughput"] is None
    document = stage.document()
    assert [entry["name"] for entry in document["unmeasured"]] == [f"test_benchmark[{cell}]" for cell in TARGET_CELLS]
    assert stage.servers() == []


def test_hangs_and_errors_fail_the_cells_that_meet_them_and_a_flush_refused_at_first_fails_none(stage: Stage):
    """One configuration each: a prompt whose requests hang, one that gets 500, and flushes refused three times."""
    scenes = (
        Scene(Script(faults=(Fault("hang", containing="Row 1:"),)), {"--max-running-requests": "1"}),
        Scene(Script(faults=(Fault("status", status=500, containing="Row 1:"),)), {"--max-running-requests": "2"}),
        Scene(Script(wire=Wire(flush_refusals=3)), {"--max-running-requests": "3"}),
    )
    configs = [f"{batch},0,0,0" for batch in (1, 2, 3)]
    run = stage.pytest(
        *("bench_tests", *stage.launching(*scenes), "--request-timeout", "1.5"),
        *("--config-list", *configs, "--benchmark-list", "gsm8k:24"),
    )
    assert run.code == 1
    found = failures(run.output)
    expected = ("no answer within 1.5 s (--request-timeout)", "status 500: ")
    for config, text in zip(configs, expected, strict=False):
        reason = found[f"{config}-gsm8k:24"]
        assert reason.startswith("1 of 24 requests failed (--max-failed 0); the first: ")
        assert text in reason
        record = stage.records()[f"{config}-gsm8k:24"]
        assert (record["metrics"]["failed"], record["metrics"]["requests"]) == (1, 23)
        assert record["metrics"]["output_throughput"] is None
        assert record["metrics"]["reasons"]["output_throughput"].startswith("a request failed")
        assert record["requests"]["status"].count("failed") == 1
    assert len(found) == 2
    assert stage.records()["3,0,0,0-gsm8k:24"]["status"] == "ok"
    assert stage.servers() == []


def test_failed_requests_up_to_max_failed_fail_no_cell(stage: Stage):
    script = Script(faults=(Fault("status", status=400, containing="Row 1:"),))
    arguments = ["bench_tests", *stage.launching(script), "--config-list", "1,0,0,0", "--benchmark-list", "gsm8k:24"]
    run = stage.pytest(*arguments, "--max-failed", "1")
    (record,) = stage.records().values()
    assert (run.code, record["status"], record["metrics"]["failed"]) == (0, "ok", 1)
    assert record["metrics"]["output_throughput"] is None, "a round with a failed request is no measure of speed"
    assert "1 of 24 failed" in run.output.partition("= specforge =")[2]


def test_a_stale_server_never_answers_for_ours(stage: Stage):
    with ScriptedServer() as stale:
        run = stage.pytest("bench_tests", *stage.launching(), "--port", str(stale.port), *LISTS)
        asked = [entry["path"] for entry in stale.requests]
    assert run.code == 1
    assert all(f"--port: {stale.port} on 127.0.0.1 is taken" in text for text in failures(run.output).values())
    assert len(failures(run.output)) == 4
    assert (asked, stage.starts()) == ([], [])


# What ends pytest in the middle of the second cell, and the exit status that it then has.
ENDINGS: dict[str, tuple[Callable[[Running], None], int, bool]] = {
    "ctrl-c": (Running.interrupt, 2, True),
    "sigterm": (lambda program: program.send(signal.SIGTERM), 2, True),
    "sigkill": (lambda program: program.send(signal.SIGKILL), -signal.SIGKILL, False),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_however_pytest_ends_no_server_is_left_and_what_was_measured_is_on_disk(stage: Stage, ending: str):
    """It ends while a request of the second cell hangs; the server has a child of its own and ignores SIGTERM."""
    script = Script(
        faults=(Fault("hang", containing="Talk 5: and say more."),),
        start=Start(children=1, ignores_sigterm=ending == "sigkill"),
    )
    end, code, keeps_the_cell_in_progress = ENDINGS[ending]
    lists = ("--config-list", "1,0,0,0", "1,3,1,4", "--benchmark-list", "gsm8k:3", "mtbench:12")
    with stage.started("bench_tests", *stage.launching(script), *lists) as program:
        wait_until(lambda: hanging(stage), within=60)
        assert len(stage.servers()) >= 2, "the server and its supervisor"
        end(program)
        assert program.wait(60) == code, program.output
        wait_until(lambda: not stage.servers(), within=30)
    records = stage.records()
    done, in_progress = "1,0,0,0-gsm8k:3", "1,0,0,0-mtbench:12"
    assert records[done]["status"] == "ok"
    assert len(stage.rows(records[done])) == 3
    assert set(records) - {done} == ({in_progress} if keeps_the_cell_in_progress else set())
    (landed,) = stage.results.rglob("1,0,0,0-mtbench_12.jsonl")
    rows = [json.loads(line) for line in landed.read_text().splitlines()]
    assert rows, "rows are written as they land"
    assert all(row["status"] == "ok" for row in rows)
    if keeps_the_cell_in_progress:
        partial = records[in_progress]
        assert (partial["status"], partial["reason"]) == ("partial", "interrupted")
        assert partial["metrics"]["requests"] == 2 * len(rows) == 2 * len(partial["requests"]["row_id"])
        assert (partial["metrics"]["output_throughput"], partial["metrics"]["accuracy"]) == (None, None)
        table = program.output.partition("= specforge =")[2]
        assert "partial" in table
        assert "interrupted: --resume results/" in table
    assert len(stage.starts()) == 1


def hanging(stage: Stage) -> bool:
    """Whether the second cell's measured requests have come to the one that hangs: all rows before it have landed."""
    (landed,) = [*stage.results.rglob("*mtbench_12.jsonl"), None][:1]
    asked_first = position_of_the_hanging_prompt(stage)
    return landed is not None and landed.read_bytes().count(b"\n") >= asked_first


def position_of_the_hanging_prompt(stage: Stage) -> int:
    """How many conversations are asked before it; all twelve rows are drawn, so only the order matters."""
    options = LoadOptions(seed=42, dataset_paths={"mtbench": str(stage.folder / "mtbench.jsonl")})
    prompts = load(BenchmarkSpec.parse("mtbench:12"), options).prompts
    return [prompt.row_id for prompt in prompts].index("86")


@pytest.mark.parametrize("ending", ["ctrl-c", "sigkill"])
def test_a_pytest_that_ends_while_its_server_starts_leaves_no_server(stage: Stage, ending: str):
    end, code, _ = ENDINGS[ending]
    script = Script(start=Start(ready_after=600, children=1))
    with stage.started("bench_tests", *stage.launching(script), *LISTS) as program:
        wait_until(stage.starts, within=60)
        end(program)
        assert program.wait(60) == code, program.output
        wait_until(lambda: not stage.servers(), within=30)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0])
def test_killed_at_any_moment_it_leaves_no_server_and_only_whole_files(stage: Stage, seconds: float):
    script = Script(pace=Pace(per_request=0.02), start=Start(children=1))
    lists = ("--config-list", "1,0,0,0", "1,3,1,4", "2,0,0,0", "--benchmark-list", "gsm8k:8", "mtbench:4")
    with stage.started("bench_tests", *stage.launching(script), *lists) as program:
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.process.wait(seconds)
        program.send(signal.SIGKILL)
        program.wait(10)
        wait_until(lambda: not stage.servers(), within=30)
    cells = stage.records() if list(stage.results.glob("*.json")) else {}
    assert set(map(str, (record["status"] for record in cells.values()))) <= {"ok"}
    for landed in stage.results.rglob("*.jsonl"):
        *whole, rest = landed.read_text().split("\n")
        assert rest == "", "each row is one write of a whole line"
        assert all("row_id" in json.loads(line) for line in whole)

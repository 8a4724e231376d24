"""A matrix on two workers is the matrix on none, but for times; what can't run is refused before anything starts."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.plugin.stage import SCRIPTED, Stage
from tests.support.processes import outer_pytest_removed
from tests.support.scripted import Drift, Replies, Script
from tests.support.scripted_server import ScriptedServer

CONFIGS = ("1,0,0,0", "1,3,1,4", "2,0,0,0")
BENCHMARKS = ("gsm8k:4", "mtbench:2")
CELLS = [f"{config}-{benchmark}" for config in CONFIGS for benchmark in BENCHMARKS]
LISTS = ("--config-list", *CONFIGS, "--benchmark-list", *BENCHMARKS)
DRIFTING = "Row 2"
SCRIPT = Script(replies=Replies(seed=3, unverified_share=0.2, drifts=(Drift(DRIFTING, 3),)))
NAMES = ("fullname", "group", "param", "params")
RECORDER = Path(__file__).with_name("recorder.py")

_TIMES = re.compile(
    r"duration|throughput|latency|speedup|ttft|tpot|itl|efficiency|in_flight|slots|window|concurrency|rate$|started|client"
)
_PLACES = {"flags", "options", "base_url", "launch_command", "worker", "rows", "server", "warnings"}


def without_times(record: Any) -> Any:
    """A record without what depends on the clock, or on where it was made."""
    if isinstance(record, dict):
        return {
            name: without_times(value)
            for name, value in record.items()
            if name not in _PLACES and not _TIMES.search(name)
        }
    if isinstance(record, list):
        return [without_times(item) for item in record]
    return record


@dataclass(frozen=True)
class Pair:
    """The same matrix without workers and on two of them: the runs' own JSON, and what ``--benchmark-json`` saved."""

    stage: Stage
    alone: dict[str, Any]
    saved_alone: dict[str, Any]
    together: dict[str, Any]
    saved_together: dict[str, Any]
    path: Path
    output: str
    base: Path

    @property
    def by_cell(self) -> dict[str, dict[str, Any]]:
        """The records of the two workers."""
        return {entry["param"]: entry["extra_info"] for entry in self.together["benchmarks"]}


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    stage = Stage(tmp_path_factory.mktemp("pair"))
    base, saved = stage.folder / "base.json", stage.folder / "saved.json"
    asked = ("bench_tests", *stage.launching(SCRIPT), *LISTS)
    alone = stage.pytest(*asked, "--benchmark-json", str(base))
    assert alone.code == 0, alone.output
    document = stage.document()
    stage.log.unlink()
    others = ("--output-dir", "parallel", "--junitxml", "junit.xml", "--benchmark-json", str(saved))
    run = stage.pytest(*asked, "-n", "2", *others)
    assert run.code == 0, run.output
    (path,) = (stage.folder / "parallel").glob("*.json")
    return Pair(stage, document, read(base), read(path), read(saved), path, run.output, base)


def test_two_workers_leave_the_record_that_none_leave(pair: Pair):
    for before, after in ((pair.alone, pair.together), (pair.saved_alone, pair.saved_together)):
        names = [[entry["name"] for entry in document["benchmarks"]] for document in (before, after)]
        assert names[0] == names[1] == [f"test_benchmark[{cell}]" for cell in CELLS]
        for one, other in zip(before["benchmarks"], after["benchmarks"], strict=True):
            assert without_times(one["extra_info"]) == without_times(other["extra_info"])
            assert [one[name] for name in NAMES] == [other[name] for name in NAMES]
            rounds = [round_["duration"] for round_ in other["extra_info"]["metrics"]["rounds"]]
            assert other["stats"]["data"] == rounds


def test_one_configurations_cells_are_on_one_worker_and_its_server_is_started_once(pair: Pair):
    workers = {cell: record["environment"]["worker"] for cell, record in pair.by_cell.items()}
    assert len(set(workers.values())) == 2
    for config in CONFIGS:
        assert len({worker for cell, worker in workers.items() if cell.startswith(config)}) == 1
    assert len(pair.stage.starts()) == len(CONFIGS)
    assert pair.stage.servers() == []


def test_speedup_and_losslessness_pair_cells_of_different_workers(pair: Pair):
    cell = pair.by_cell["1,3,1,4-gsm8k:4"]
    target_only = pair.by_cell["1,0,0,0-gsm8k:4"]["metrics"]
    assert cell["metrics"]["speedup"] == cell["metrics"]["output_throughput"] / target_only["output_throughput"]
    rows = [json.loads(line) for line in (pair.path.parent / cell["rows"]["path"]).read_bytes().splitlines()]
    drifted = sum(DRIFTING in json.dumps(row["messages"]) for row in rows)
    assert 0 < drifted < len(rows)
    assert cell["metrics"]["lossless"]["identical_share"] == 1 - drifted / len(rows)


def test_junit_has_each_cell_s_metrics_and_not_what_travels_in_reports(pair: Pair):
    cases = ElementTree.parse(pair.stage.folder / "junit.xml").iter("testcase")
    said = {case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")} for case in cases}
    entries = json.loads(pair.path.read_text(encoding="utf-8"))["benchmarks"]
    assert set(said) == {entry["name"] for entry in entries}
    for entry in entries:
        metrics, properties = entry["extra_info"]["metrics"], said[entry["name"]]
        assert float(properties["output_throughput"]) == metrics["output_throughput"]
        assert ("acceptance_length" in properties) == (metrics["acceptance_length"] is not None)
        assert "specforge" not in properties


def test_the_controller_says_what_a_session_without_workers_would(pair: Pair):
    assert "automatically disabled" not in pair.output
    assert f"record: parallel/{pair.path.name}" in pair.output
    assert "6 passed" in pair.output
    assert "warning" not in pair.output.rpartition("record:")[2]


def test_pytest_benchmark_compares_both(pair: Pair):
    compare = [sys.executable, "-m", "pytest_benchmark", "compare", str(pair.path), str(pair.base)]
    compared = subprocess.run(compare, cwd=pair.stage.folder, capture_output=True, text=True, check=False)
    assert compared.returncode == 0, compared.stderr
    assert compared.stdout.count("test_benchmark[1,3,1,4-gsm8k:4]") == 2


def test_a_gate_fails_a_parallel_session(pair: Pair):
    stage = pair.stage
    worse = stage.launching(Script(replies=Replies(seed=3, acceptance=0.05)))
    run = stage.pytest(
        *("bench_tests", *worse, *LISTS, "-n", "2", "--output-dir", "worse"),
        *(f"--benchmark-compare={pair.base}", "--fail-on", "acceptance_length:2%"),
    )
    assert run.code == 1, run.output
    assert "REGRESSION" in run.output
    assert "6 passed" in run.output


def output_ids(rows_of_cells: list[list[dict[str, Any]]]) -> list[list[int]]:
    """The answers' tokens, cell by cell, by row id: rows stand in the order in which answers came in."""
    return [
        turn["output_ids"]
        for rows in rows_of_cells
        for row in sorted(rows, key=lambda row: str(row["row_id"]))
        for turn in row["turns"]
    ]


@pytest.mark.slow
def test_the_embedded_engine_gives_the_same_tokens_on_two_workers(stage: Stage):
    """Four configurations x three benchmarks: same prompts, answers, acceptance and accuracies, whatever the worker."""
    configs = ("1,0,0,0", "1,3,1,4", "1,1,1,2", "1,2,2,4")
    lists = ("--config-list", *configs, "--benchmark-list", "gsm8k:2", "mtbench:2", "math500:2")
    documents = []
    for workers in ((), ("-n", "2")):
        run = stage.pytest("bench_tests", *lists, "--max-new-tokens", "48", *workers)
        assert run.code == 0, run.output
        documents.append((stage.records(), [stage.rows(record) for record in stage.records().values()]))
    (alone, rows_alone), (together, rows_together) = documents
    assert list(alone) == list(together)
    assert len(alone) == 12
    assert without_times(alone) == without_times(together)
    assert output_ids(rows_alone) == output_ids(rows_together)


def test_what_cannot_run_in_parallel_is_one_line_before_anything_starts(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    launching, lists = stage.launching(), ("--config-list", "1,0,0,0", "--benchmark-list", "gsm8k:2")
    runs = {
        ("-n", "3", *launching): "-n 3: 2 visible devices make 2 shares of 1 ",
        ("-n", "2", *launching, "--tp-size", "2"): "-n 2: 2 visible devices make 1 shares of 2 ",
        ("-n", "2", *launching, "--port", "31234"): "--port: 31234 can't be the port of 2 servers at once",
        ("-n", "2", *launching, "--gpus", "0,0"): "--gpus: '0,0' is not a list of devices",
        ("-n", "2", "--base-url", "http://127.0.0.1:9"): "--base-url: 2 workers for 1 server",
        ("--base-url", "http://127.0.0.1:9", "http://127.0.0.1:8"): "--base-url: 2 servers for 1 worker",
    }
    results = stage.several(*(("bench_tests", *arguments, *lists) for arguments in runs))
    for result, message in zip(results, runs.values(), strict=True):
        assert result.code == 4
        (line,) = (line for line in result.output.splitlines() if line.startswith("ERROR: "))
        assert line.startswith(f"ERROR: {message}")
    assert stage.starts() == []
    assert not stage.results.exists()


def test_a_mistake_that_only_workers_can_find_ends_the_session_with_its_line(stage: Stage):
    (stage.folder / "gsm8k.jsonl").write_text('{"answer": "no question"}\n', encoding="utf-8")
    run = stage.pytest("bench_tests", *stage.launching(), *LISTS, "-n", "2")
    assert run.code == 4
    (line,) = (line for line in run.output.splitlines() if line.startswith("ERROR: "))
    assert "gsm8k" in line
    assert "question" in line
    assert "INTERNALERROR" not in run.output
    assert stage.starts() == []


def shares_given(stage: Stage, tp: int, workers: int) -> list[dict[str, Any]]:
    """What the servers of as many configurations as workers are given on a machine that pretends to have eight GPUs."""
    notes = stage.folder / "notes.jsonl"
    flags = stage.launching()
    command = [sys.executable, str(RECORDER), str(notes), str(SCRIPTED), "--script", str(stage.script_file)]
    flags[flags.index("--launch-command") + 1] = shlex.join(command)
    configs = [f"{size},0,0,0" for size in range(1, workers + 1)]
    environment = {"CUDA_VISIBLE_DEVICES": "8,9,10,11,12,13,14,15"}
    run = stage.pytest(
        *("bench_tests", *flags, "-n", str(workers), "--tp-size", str(tp)),
        *("--config-list", *configs, "--benchmark-list", "gsm8k:1"),
        environment=environment,
    )
    assert run.code == 0, run.output
    records = stage.records()
    given = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
    for server in given:
        flags_given = server["flags"]
        size = flags_given[flags_given.index("--max-running-requests") + 1]
        environment_said = records[f"{size},0,0,0-gsm8k:1"]["environment"]
        assert ",".join(environment_said["devices"]) == server["environment"]["CUDA_VISIBLE_DEVICES"]
        assert environment_said["base_url"].endswith(":" + flags_given[flags_given.index("--port") + 1])
    return given


def check_shares(given: list[dict[str, Any]], tp: int, workers: int) -> None:
    """Each of the servers has its own port and its own neighbouring devices, and is told how many they are."""
    assert len(given) == workers
    ports = [server["flags"][server["flags"].index("--port") + 1] for server in given]
    assert len(set(ports)) == workers
    shares = Counter(server["environment"]["CUDA_VISIBLE_DEVICES"] for server in given)
    neighbours = [",".join(map(str, range(start, start + tp))) for start in range(8, 8 + workers * tp, tp)]
    assert shares == dict.fromkeys(neighbours, 1)
    for server in given:
        assert server["flags"][server["flags"].index("--tp-size") + 1] == str(tp)


def test_each_server_has_its_own_port_and_share_of_the_devices(stage: Stage):
    check_shares(shares_given(stage, tp=2, workers=2), tp=2, workers=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tp, workers", [(tp, workers) for tp in (1, 2, 4) for workers in range(1, 9) if tp * workers <= 8]
)
def test_shares_and_ports_of_every_division(stage: Stage, tp: int, workers: int):
    check_shares(shares_given(stage, tp, workers), tp, workers)


def test_each_worker_attaches_to_a_server_of_its_own(stage: Stage):
    with ScriptedServer(SCRIPT) as one, ScriptedServer(SCRIPT) as other:
        urls = [one.base_url, other.base_url]
        run = stage.pytest("bench_tests", "-n", "2", "--base-url", *urls, *stage.data, *LISTS)
        assert run.code == 0, run.output
        used = Counter(record["environment"]["base_url"] for record in stage.records().values())
        assert set(used) == set(urls)
        assert all(server.generations for server in (one, other))


def test_one_server_behind_several_workers_is_told_where_it_is_meant(stage: Stage):
    with ScriptedServer(SCRIPT) as server:
        asked = ("bench_tests", "-n", "2", "--shared-server", "--base-url", server.base_url, *stage.data, *LISTS)
        run = stage.pytest(*asked)
        assert run.code == 0, run.output
        assert "warning: --shared-server: 2 workers load one server at once" in run.output


def test_workers_of_other_projects_are_left_alone(tmp_path: Path):
    """Entry point installed, no option given, no cell collected, though ids may look like a configuration's."""
    (tmp_path / "test_own.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('n', ['1,0,0,0', '1,3,1,4', '3', '4'])\n"
        "def test_own(n, benchmark): assert benchmark(lambda: n) == n\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "specforge.plugin", "-v", "-n", "2"]
    environment = outer_pytest_removed() | {"PYTHONPATH": str(SCRIPTED.parents[2])}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert "scheduling tests via LoadScheduling" in run.stdout
    assert "automatically disabled because xdist" in run.stdout
    assert "specforge:" not in run.stdout
    assert {path.name for path in tmp_path.iterdir()} <= {"test_own.py", "__pycache__", ".benchmarks"}

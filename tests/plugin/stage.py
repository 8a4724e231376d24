"""A folder outside the checkout with the benchmark test, its rows, and scripted servers for a matrix to measure."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes import (
    ROOT,
    Completed,
    Process,
    Running,
    mentioning,
    pytest_command,
    run_pytest,
    running,
)
from tests.support.scripted.script import Scene, Script, dump

SCRIPTED = ROOT / "tests" / "support" / "scripted_server.py"
LIMIT = 300
"""``--max-new-tokens`` of the stage's runs: warm-up asks for at most 256, so a log tells measured requests apart."""

_CATEGORIES = ("writing", "math", "coding")


def question_rows(count: int) -> list[dict[str, Any]]:
    """Rows in GSM8K's columns; the answer to question N is N."""
    return [
        {"question": f"Row {at}: how many pears make {at} pears?", "answer": f"So many.\n#### {at}"}
        for at in range(count)
    ]


def conversation_rows(count: int) -> list[dict[str, Any]]:
    """Rows in MT-Bench's columns, of two turns each."""
    return [
        {
            "prompt": [f"Talk {at}: say something.", f"Talk {at}: and say more."],
            "category": _CATEGORIES[at % len(_CATEGORIES)],
            "prompt_id": 81 + at,
        }
        for at in range(count)
    ]


class Stage:
    """Where one test's matrices run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script_file = folder / "script.json"
        self.log = folder / "requests.jsonl"
        self.results = folder / "results"
        shutil.copytree(ROOT / "bench_tests", folder / "bench_tests", ignore=shutil.ignore_patterns("__pycache__"))
        self._rows("gsm8k.jsonl", question_rows(24))
        self._rows("mtbench.jsonl", conversation_rows(12))

    def _rows(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    @property
    def data(self) -> list[str]:
        """The flags that name the rows, and the token limit."""
        paths = [f"--dataset-path={name}={self.folder / name}.jsonl" for name in ("gsm8k", "mtbench")]
        return [*paths, "--max-new-tokens", str(LIMIT)]

    def launching(self, *scenes: Scene | Script) -> list[str]:
        """The flags of a matrix that launches scripted servers: of the scenes, the first that applies is followed."""
        listed = [scene if isinstance(scene, Scene) else Scene(scene) for scene in scenes or (Script(),)]
        dump(listed, self.script_file)
        command = [sys.executable, str(SCRIPTED), "--script", str(self.script_file), "--script-log", str(self.log)]
        models = ["--model-path", "org/model", "--speculative-draft-model-path", "org/draft"]
        return [*models, "--launch-command", shlex.join(command), *self.data]

    def pytest(
        self,
        *arguments: str,
        within: float = 180.0,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        """Runs pytest as a program."""
        return run_pytest(*arguments, cwd=cwd or self.folder, within=within, environment=environment)

    @contextmanager
    def started(self, *arguments: str) -> Iterator[Running]:
        """Pytest as a program that still runs."""
        environment = {"PYTHONUNBUFFERED": "1"}
        with running(pytest_command("-s", *arguments), cwd=self.folder, environment=environment) as program:
            yield program

    def several(self, *runs: Sequence[str]) -> list[Completed]:
        """Several runs of pytest, one after the other in one process."""
        path = self.folder / "runs.json"
        path.write_text(json.dumps(runs), encoding="utf-8")
        script = Path(__file__).with_name("several_runs.py")
        command = [sys.executable, str(script), str(path)]
        with running(command, cwd=self.folder) as program:
            assert program.wait(180) == 0, program.output
        return [Completed(**result) for result in json.loads(path.read_text(encoding="utf-8"))]

    # What was left behind

    def document(self) -> dict[str, Any]:
        """The newest run's JSON."""
        newest = max(self.results.glob("*.json"), key=lambda path: path.stat().st_mtime)
        found: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
        return found

    def records(self) -> dict[str, dict[str, Any]]:
        """The newest run's records by test id, measured or not."""
        document = self.document()
        entries = [*document["benchmarks"], *document["unmeasured"]]
        return {entry["name"].partition("[")[2].rstrip("]"): entry["extra_info"] for entry in entries}

    def rows(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        """A record's rows."""
        lines = (self.results / record["rows"]["path"]).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def log_entries(self) -> list[dict[str, Any]]:
        """What launched servers logged: their starts and every request with its raw response, in order."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def starts(self) -> list[list[str]]:
        """The command line of every server that was launched."""
        if not self.log.exists():
            return []
        return [entry["argv"] for entry in self.log_entries() if entry.get("event") == "start"]

    def servers(self) -> list[Process]:
        """Launched servers that still live, supervisors included."""
        return mentioning(str(self.script_file))

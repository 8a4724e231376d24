"""The recipe of docs/ci.md: its scripts, and the steps of its workflows, run from a copy of what a clone holds."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugin.stage import Stage
from tests.results.records import record, save, slowed
from tests.support.processes import ROOT, Completed, outer_pytest_removed, running
from tests.support.scripted import Pace, Script

RECIPE = ("bench_tests", "examples", "conftest.py", "pytest.ini")
Run = Callable[..., Completed]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command in a clone with an installed package on its path, as the workflows' first step leaves it."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in RECIPE:
        path = ROOT / name
        copy: Callable[..., object] = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, clone / name)
    installed = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

    def in_clone(*command: object) -> Completed:
        environment = {**outer_pytest_removed(), "PATH": installed}
        with running([*map(str, command)], cwd=clone, environment=environment, log=tmp_path / "output") as program:
            return Completed(program.wait(180), program.output)

    return in_clone


def steps(workflow: str, script: str) -> list[list[str]]:
    """The command lines of a workflow that call a script of the recipe."""
    text = (ROOT / "examples" / "ci" / workflow).read_text(encoding="utf-8").replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(rf"[^\s(]*examples/ci/{script}[^)\n]*", text)]


def test_the_gate_passes_what_is_as_fast_fails_what_is_slower_and_writes_the_table_either_way(
    run: Run, tmp_path: Path
) -> None:
    cell = record(rounds=[100.0, 100.4, 99.8, 100.1, 99.9])
    base, slower = save(tmp_path / "base.json", cell), save(tmp_path / "slower.json", slowed(cell, 0.8))
    for new, code, says in ((base, 0, "gate: "), (slower, 1, "REGRESSION")):
        table = tmp_path / f"{new.stem}.md"
        found = run("examples/ci/gate.sh", base, new, table)
        assert found.code == code, found.output
        assert says in table.read_text(encoding="utf-8")
        assert "| configuration | benchmark | metric |" in table.read_text(encoding="utf-8")
    missing = run("examples/ci/gate.sh", tmp_path / "none.json", base, tmp_path / "none.md")
    assert missing.code == 2
    assert "none.json" in missing.output


def test_the_scripts_are_sound_shell_and_are_what_the_workflows_call() -> None:
    for script in ("measure.sh", "gate.sh"):
        path = ROOT / "examples" / "ci" / script
        assert os.access(path, os.X_OK)
        assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
        assert all(len(steps(workflow, script)) >= 1 for workflow in ("embedded.yml", "gpu.yml"))


@pytest.mark.slow
def test_an_unchanged_tree_passes_and_a_slowed_server_fails(run: Run, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage")
    asked = ["--config-list", "1,0,0,0", "1,3,1,4", "--benchmark-list", "gsm8k:2"]
    for name, pace in (("baseline", 0.1), ("same", 0.1), ("slower", 0.15)):
        flags = stage.launching(Script(pace=Pace(per_request=pace)))
        measured = run("examples/ci/measure.sh", f"{name}.json", *flags, *asked)
        assert measured.code == 0, measured.output
    same = run("examples/ci/gate.sh", "baseline.json", "same.json", "table.md")
    slower = run("examples/ci/gate.sh", "baseline.json", "slower.json", "table.md")
    table = (tmp_path / "clone" / "table.md").read_text(encoding="utf-8")
    assert same.code == 0, same.output
    assert slower.code == 1, slower.output
    assert table.count("REGRESSION") == 2


@pytest.mark.slow
def test_the_steps_of_the_workflow_without_a_gpu_run_as_they_stand(run: Run, tmp_path: Path) -> None:
    (base, own), (gate,) = steps("embedded.yml", "measure.sh"), steps("embedded.yml", "gate.sh")
    assert base[2:] == own[2:], "both sides are asked the same"
    # Fewer rounds of shorter answers, and one side stands for both: there is one tree here, and little time.
    measured = run(*own, "--max-new-tokens", "24", "--rounds", "2")
    assert measured.code == 0, measured.output
    clone = tmp_path / "clone"
    shutil.copy(clone / own[1], clone / Path(base[1]).name)
    judged = run(*gate)
    assert judged.code == 0, judged.output
    assert (clone / gate[3]).read_text(encoding="utf-8").count("gsm8k") >= 2

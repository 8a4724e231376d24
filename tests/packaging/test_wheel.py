"""The wheel: what it holds, and that the benchmark runs from it where there is no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.processes import ROOT, run_pytest

LARGEST = 20 * 2**20
DATA = {".jsonl", ".json", ".safetensors", ".html"}


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since a build leaves files in its tree, and without network."""
    pytest.importorskip("setuptools", minversion="77", reason="building without network needs setuptools 77 or later")
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "specforge", source / "specforge", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(built), str(source))
    (found,) = built.glob("specforge-*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_holds_all_of_the_package_and_is_small(wheel: Path):
    with ZipFile(wheel) as archive:
        held = set(archive.namelist())
    package = (path for path in (ROOT / "specforge").rglob("*") if path.suffix in {".py", ".typed"} | DATA)
    assert {path.relative_to(ROOT).as_posix() for path in package} <= held
    assert "specforge/py.typed" in held
    assert {name.partition("/")[0].partition("-")[0] for name in held} == {"specforge"}
    assert wheel.stat().st_size < LARGEST


@pytest.mark.slow
def test_the_benchmark_runs_from_the_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path):
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    pip("install", "--no-deps", "--no-index", "--target", str(installed), str(wheel))
    run = run_pytest(
        *("--pyargs", "specforge.bench_tests", "-p", "no:cacheprovider", "-v"),
        *("--config-list", "1,0,0,0", "--benchmark-list", "gsm8k:2"),
        cwd=empty,
        environment={"PYTHONPATH": str(installed)},
    )
    assert run.code == 0, run.output
    assert "test_benchmark.py::test_benchmark[1,0,0,0-gsm8k:2] PASSED" in run.output
    (record,) = (empty / "results").glob("*.json")
    assert str(installed) in record.read_text(encoding="utf-8"), "the embedded engine's model is the wheel's"
    assert os.listdir(empty / "results" / record.stem / "rows")

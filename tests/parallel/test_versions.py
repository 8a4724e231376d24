"""The oldest pytest, pytest-benchmark and pytest-xdist that pyproject.toml allows; the newest are what is installed."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT, run_pytest

PACKAGES = ("pytest", "pytest-benchmark", "pytest-xdist")


def oldest_allowed() -> dict[str, str]:
    """The lower bound of each package, as pyproject.toml has it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = {name: re.search(rf'^\s*"{name}>=([\d.]+)', text, re.MULTILINE) for name in PACKAGES}
    return {name: found[1] for name, found in bounds.items() if found is not None}


@pytest.mark.slow
def test_matrices_on_workers_with_the_oldest_versions(tmp_path: Path):
    """They are laid over the installed ones; everything else stays as it is."""
    versions = oldest_allowed()
    assert versions.keys() == set(PACKAGES)
    overlay = tmp_path / "oldest"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(overlay)]
    pinned = [f"{name}=={version}" for name, version in versions.items()]
    done = subprocess.run([*install, *pinned], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"they could not be downloaded: {done.stderr.strip()[-300:]}")
    found = importlib.metadata.distributions(path=[str(overlay)])
    laid = {distribution.name: distribution.version for distribution in found}
    run = run_pytest(
        *("-v", "-m", "not slow", "--rootdir", str(ROOT), "-c", str(ROOT / "pytest.ini")),
        *("--basetemp", str(tmp_path / "inner"), str(ROOT / "tests" / "parallel" / "test_matrix.py")),
        cwd=tmp_path,
        within=600,
        environment={"PYTHONPATH": os.pathsep.join((str(overlay), str(ROOT)))},
    )
    assert run.code == 0, run.output
    assert f"pytest-{laid['pytest']}," in run.output
    for name in ("benchmark", "xdist"):
        assert f"{name}-{laid[f'pytest-{name}']}" in run.output

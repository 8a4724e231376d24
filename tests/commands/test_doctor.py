"""``specforge doctor``: findings, whatever is or is not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from specforge.cli import main
from specforge.datasets import known_names
from tests.support.processes import running

BOTH = """
import sys
from specforge.cli import main
sys.exit(main(["doctor", "--launch-command", "container run image"]) or main(["doctor", "--json"]))
"""


def test_each_finding_is_one_line_about_what_is_really_there(tmp_path: Path):
    """SGLang's metadata and a cached dataset are laid out as pip and the Hub's client lay them out."""
    dataset = tmp_path / "hub" / "datasets--openai--gsm8k"
    snapshot = dataset / "snapshots" / ("a" * 40)
    for folder in (snapshot, dataset / "refs", dataset / "blobs"):
        folder.mkdir(parents=True)
    (snapshot / "test.parquet").write_bytes(b"rows")
    information = tmp_path / "site" / "sglang-0.5.20.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.20\n")
    environment = {"HF_HUB_CACHE": str(tmp_path / "hub"), "PYTHONPATH": str(tmp_path / "site")}
    with running([sys.executable, "-c", BOTH], cwd=tmp_path, environment=environment) as program:
        assert program.wait(60) == 0, program.output
    text, bracket, rest = program.output.partition("\n[")
    said = {line[2:].split()[0]: line[12:] for line in text.splitlines()}
    assert list(said) == ["specforge", "packages", "GPUs", "SGLang", "datasets", "sandbox", "engine"]
    assert said["SGLang"] == "can't be told: 'container' is no Python, nor a script that names one"
    assert said["datasets"].startswith("1 of 13 cached: gsm8k; not: aime, ceval")
    assert said["engine"].startswith("starts, drafts and answers")
    found = {finding["about"]: finding["details"] for finding in json.loads(bracket + rest)}
    assert list(found) == list(said)
    assert found["SGLang"]["version"] == "0.5.20"
    assert set(found["datasets"]["not_cached"]) == set(known_names()) - {"gsm8k"}
    assert found["packages"]["versions"]["pytest"] == pytest.__version__


def test_wrong_use_is_2(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--launch-command", "'"]) == 2
    assert capsys.readouterr().err.startswith("specforge doctor: --launch-command: ")

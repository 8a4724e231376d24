"""Public rows and cases that lie beside the checkout where there are any, and the command's result for outputs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from specforge.commands import score

SHARED = Path(__file__).parents[3] / "shared"


def shared(path: str) -> Path:
    """A path below ``../shared``; skips the test where it is not there."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not there")
    return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Writes a JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def scored(tmp_path: Path, name: str, data: Path, outputs: Iterable[tuple[int, str]]) -> dict[str, Any]:
    """What ``specforge score --json`` says of outputs, given as (index, text)."""
    lines = ({"index": index, "output": output} for index, output in outputs)
    file, result = write_lines(tmp_path / "outputs.jsonl", lines), tmp_path / "result.json"
    parser = argparse.ArgumentParser()
    score.add_parser(parser.add_subparsers())
    arguments = ["score", name, "--outputs", str(file), "--dataset-path", f"{name}={data}", "--json", str(result)]
    assert score.run(parser.parse_args(arguments)) == 0
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found

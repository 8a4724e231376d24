"""``specforge benchmark`` as a test runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specforge.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left: exit status, both streams, and the record where one was asked for."""

    status: int
    out: str
    err: str
    path: Path

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return found

    def rows(self, name: str = "record.rows.jsonl") -> list[dict[str, Any]]:
        lines = self.path.with_name(name).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


class Benchmarking:
    """Runs the command in this process, on the built-in gsm8k samples unless told otherwise."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "record.json"
        self._capsys = capsys

    def __call__(self, url: str, *flags: object, dataset: Sequence[str] = ("gsm8k", "--samples")) -> Done:
        self._capsys.readouterr()
        command = ["benchmark", "--base-url", url, "--dataset", *dataset, "--output-json", str(self.path)]
        status = main([*command, *map(str, flags)])
        said = self._capsys.readouterr()
        return Done(status, said.out, said.err, self.path)

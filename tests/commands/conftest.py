"""Fixtures of the commands' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.benchmarking import Benchmarking


@pytest.fixture
def benchmark_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Benchmarking:
    """``specforge benchmark``, its record in the test's own folder."""
    return Benchmarking(tmp_path, capsys)

"""The stage on which matrices run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A fresh folder to run matrices in."""
    return Stage(tmp_path)

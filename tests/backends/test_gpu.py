"""Waiting for the GPUs' memory, with a program that pretends to be nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest

from specforge.backends.gpu import memory_in_use, wait_until_freed


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What nvidia-smi prints, as a file that a test writes."""
    path = tmp_path / "report"
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncat "{path}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    path.write_text("0, GPU-aa11, 100\n1, GPU-bb22, 70000\n")
    return path


@pytest.mark.usefixtures("report")
@pytest.mark.parametrize(
    "devices, expected",
    [(None, {"0": 100, "1": 70000}), (("1",), {"1": 70000}), (("GPU-aa",), {"0": 100}), (("7",), {})],
)
def test_memory_is_read_for_the_devices_of_interest(devices: tuple[str, ...] | None, expected: dict[str, int]):
    assert memory_in_use(devices) == expected


def test_without_nvidia_smi_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert memory_in_use(None) is None


def test_memory_that_stays_taken_is_waited_for_within_bounds(report: Path):
    assert not wait_until_freed({"0": 100, "1": 100}, None, 0.1)
    report.write_text("0, GPU-aa11, 100\n1, GPU-bb22, 300\n")
    assert wait_until_freed({"0": 100, "1": 100}, None, 0.1)


def test_another_devices_memory_is_not_waited_for(report: Path):
    report.write_text("0, GPU-aa11, 60000\n1, GPU-bb22, 100\n")
    assert wait_until_freed({"1": 100}, ("1",), 0.1)


@pytest.mark.usefixtures("report")
def test_where_nothing_was_known_before_nothing_is_waited_for():
    assert wait_until_freed(None, None, 0.1)

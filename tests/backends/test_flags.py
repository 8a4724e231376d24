"""Which spelling of a flag the installed version takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specforge.backends.flags import KnownFlags, given_flags, probe_flags

OLD, NEW = "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"


def pretend_sglang(folder: Path, version: str, help_text: str = "") -> tuple[list[str], dict[str, str]]:
    """A package that an interpreter takes for SGLang: its command and the environment that shows it."""
    (folder / f"sglang-{version}.dist-info").mkdir(parents=True)
    (folder / f"sglang-{version}.dist-info" / "METADATA").write_text(f"Name: sglang\nVersion: {version}\n")
    (folder / "sglang").mkdir()
    (folder / "sglang" / "__init__.py").touch()
    (folder / "sglang" / "launch_server.py").write_text(f"print({help_text!r})")
    return [sys.executable, "-m", "sglang.launch_server"], {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    "version, expected", [("0.4.9.post2", OLD), ("0.5.16", OLD), ("0.5.23", NEW), ("0.6.0rc1", NEW)]
)
def test_the_installed_version_decides(tmp_path: Path, version: str, expected: str):
    assert probe_flags(*pretend_sglang(tmp_path, version)).graph_limit == expected


@pytest.mark.parametrize("known", [OLD, NEW])
def test_a_version_between_the_known_ones_is_asked_for_its_help(tmp_path: Path, known: str):
    assert probe_flags(*pretend_sglang(tmp_path, "0.5.20", help_text=f"[{known} N]")).graph_limit == known


def test_a_scripts_interpreter_is_asked(tmp_path: Path):
    _, environment = pretend_sglang(tmp_path, "0.5.10")
    script = tmp_path / "serve"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    assert probe_flags([str(script), "serve"], environment).graph_limit == OLD


@pytest.mark.parametrize("command", [["no-such-program"], ["sh", "-c", "exit 1"]])
def test_a_command_that_cannot_be_asked_is_taken_for_a_recent_sglang(command: list[str]):
    assert probe_flags(command, {}).graph_limit == NEW


@pytest.mark.parametrize(
    "known, log, other",
    [
        (NEW, "launch_server.py: error: unrecognized arguments: --cuda-graph-max-bs-decode 4", OLD),
        (OLD, "error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, ...", NEW),
        (OLD, "error: unrecognized arguments: --cuda-graph-max-bs 1", NEW),
    ],
)
def test_a_refused_spelling_gives_way_to_the_other(known: str, log: str, other: str):
    assert KnownFlags(known).after_refusal(2, log) == KnownFlags(other)


@pytest.mark.parametrize(
    "status, log",
    [
        (1, "error: unrecognized arguments: --cuda-graph-max-bs-decode 4"),
        (2, "error: unrecognized arguments: --bogus"),
        (None, ""),
    ],
)
def test_another_reason_to_exit_is_not_tried_again(status: int | None, log: str):
    assert KnownFlags(NEW).after_refusal(status, log) is None


def test_flags_are_found_with_their_last_values():
    words = ["--a", "1", "--b=2", "--switch", "--a", "3", "--tp", "2", "--lone"]
    assert given_flags(words) == {"--a": "3", "--b": "2", "--switch": None, "--tp-size": "2", "--lone": None}

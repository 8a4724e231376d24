"""The level of isolation is what a probe found, and what is missing is said."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from specforge.errors import SpecForgeError, UsageError
from specforge.scoring.code import CodeScorer, MbppTask
from specforge.scoring.sandbox import launch
from specforge.scoring.sandbox.guest.seccomp import filter_program
from specforge.scoring.sandbox.interpreter import readable_paths
from specforge.scoring.sandbox.probe import detect, judge_isolation, probe
from specforge.scoring.sandbox.settings import Isolation, SandboxSettings
from specforge.scoring.sandbox.worker import Sandbox, SandboxFailed
from specforge.scoring.score import Answer

HELD = {"network": True, "read": True, "write": True, "processes": True, "environment": True}


def test_what_this_machine_isolates_holds(kind: str) -> None:
    with Sandbox(kind, SandboxSettings()) as sandbox:
        held = probe(sandbox)
        isolation = judge_isolation(kind, sandbox.powers, held)

    assert held == HELD
    assert isolation.level == ("partial" if kind == "process" else "full")


@pytest.mark.parametrize("name", ["network", "read", "write"])
def test_a_way_to_the_network_or_to_files_is_no_isolation(name: str) -> None:
    isolation = judge_isolation("namespace", ("namespaces",), {**HELD, name: False})

    assert isolation.level == "none"
    assert isolation.reason == f"not closed: {name}"


def test_other_processes_within_reach_are_partial_isolation() -> None:
    isolation = judge_isolation("bwrap", (), {**HELD, "processes": False})

    assert isolation.level == "partial"
    assert "not closed: processes" in isolation.reason


def failing(kind: str, _: SandboxSettings) -> Sandbox:
    raise SandboxFailed(f"{kind}: forbidden here")


def test_where_nothing_starts_there_is_no_isolation_and_each_reason_is_given() -> None:
    isolation = detect(SandboxSettings(), opened=failing)

    assert isolation.level == "none"
    for kind in ("bwrap", "namespace", "process"):
        assert f"{kind}: forbidden here" in isolation.reason


def test_what_is_better_and_missing_is_said_beside_what_is_used() -> None:
    def only_process(kind: str, settings: SandboxSettings) -> Sandbox:
        return Sandbox(kind, settings) if kind == "process" else failing(kind, settings)

    isolation = detect(SandboxSettings(), opened=only_process)

    assert isolation.kind == "process"
    assert "namespace: forbidden here" in isolation.reason


def leaking(_: SandboxSettings) -> Isolation:
    return judge_isolation("process", (), {**HELD, "read": False})


def test_a_machine_that_starts_no_sandbox_is_an_error_even_if_the_user_insists() -> None:
    scorer = CodeScorer(
        SandboxSettings(allow=True, unsafe=True), find=lambda settings: detect(settings, opened=failing)
    )

    with pytest.raises(UsageError, match=r"programs can't be run on this machine: .*forbidden here"):
        scorer.score_all([Answer("row", MbppTask(("assert f() == 1",)), ("def f(): return 1",))])


def test_a_sandbox_that_starts_no_more_is_an_error_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = CodeScorer(SandboxSettings(allow=True, unsafe=True))
    assert scorer.isolation.held
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    with pytest.raises(SpecForgeError, match="can't be started any more"):
        scorer.score_all([Answer("row", MbppTask(("assert f() == 1",)), ("def f(): return 1",))] * 3)


def test_no_isolation_is_refused_unless_the_user_insists() -> None:
    answers = [Answer("row", MbppTask(("assert f() == 1",)), ("def f(): return 1",))]

    with pytest.raises(
        UsageError, match=r"--allow-code-execution: nothing isolates programs .*--unsafe-code-execution"
    ):
        CodeScorer(SandboxSettings(allow=True), find=leaking).score_all(answers)
    (score,) = CodeScorer(SandboxSettings(allow=True, unsafe=True), find=leaking).score_all(answers)
    assert score.correct is True


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_container_gets_no_network_no_rights_and_nothing_of_the_host_but_the_guest(kind: str, tmp_path: Path) -> None:
    words = launch.launch(kind, SandboxSettings(kind=kind, image="python:3.12"), str(tmp_path), 1).command

    assert words[:2] == (kind, "run")
    for option, value in (("--network", "none"), ("--cap-drop", "ALL"), ("--user", "65534:65534")):
        assert words[words.index(option) + 1] == value
    assert "--read-only" in words
    volumes = [words[number + 1] for number, word in enumerate(words) if word == "--volume"]
    assert [volume.split(":")[1:] for volume in volumes] == [["/sandbox/guest", "ro"]]
    assert words[words.index("python:3.12") + 1] == "python3"


def test_programs_may_not_read_the_home_or_the_temporary_folder_as_a_whole() -> None:
    readable = readable_paths()

    assert os.path.expanduser("~") not in readable
    assert not {"/", "/home", "/root", "/tmp", "/etc", "/var"} & set(readable)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("own_pid", [None, 77])
def test_a_filter_jumps_within_itself_and_ends_with_a_verdict(machine: str, own_pid: int | None) -> None:
    program = filter_program(machine, own_pid)
    instructions = [program[start : start + 8] for start in range(0, len(program), 8)]

    for number, instruction in enumerate(instructions):
        code = int.from_bytes(instruction[:2], "little")
        if code & 0x07 == 0x05:  # a jump
            assert number + 1 + max(instruction[2], instruction[3]) < len(instructions)
    assert int.from_bytes(instructions[-1][:2], "little") == 0x06


def test_a_processor_that_is_not_known_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        filter_program("riscv64")

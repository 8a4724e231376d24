"""``specforge doctor``: what is installed and what works here, a line a finding."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from specforge.errors import ServerError, UsageError

_EPILOG = """\
examples:
  specforge doctor
  specforge doctor --json
  specforge doctor --launch-command "/opt/sglang/bin/python -m sglang.launch_server"
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: what it is, in a word.
        ok: whether it is as it should be; None where it is neither good nor bad.
        text: one line for people.
        details: the same as plain data.
    """

    about: str
    ok: bool | None
    text: str
    details: dict[str, Any]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's options."""
    parser = commands.add_parser(
        "doctor",
        help="say what is installed and what works here",
        description="Says what is installed, which GPUs, SGLang and cached datasets there are, whether the sandbox "
        "isolates model-written code, and whether the embedded engine works. It downloads nothing. Exit status: 0; "
        "what is amiss is marked with an exclamation mark.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--launch-command",
        default=None,
        metavar="COMMAND",
        help="the command of pytest's --launch-command, to look for SGLang in its interpreter",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings.

    Raises:
        UsageError: ``--launch-command`` can't be split into words.
    """
    checks = (_python, _packages, _gpus, _sglang(arguments.launch_command), _datasets, _sandbox, _engine)
    if arguments.json:
        findings = [asdict(finding) for check in checks for finding in check()]
        print(json.dumps(findings, indent=2))
        return 0
    marks = {True: " ", False: "!", None: " "}
    for check in checks:
        for finding in check():
            print(f"{marks[finding.ok]} {finding.about:<10}{finding.text}", flush=True)
    return 0


def _python() -> Iterator[Finding]:
    from specforge import __version__

    found = {"specforge": __version__, "python": platform.python_version(), "interpreter": sys.executable}
    yield Finding("specforge", None, f"{__version__}, Python {found['python']} at {sys.executable}", found)


def _packages() -> Iterator[Finding]:
    """Each requirement of the package that holds on this Python, against what is installed; wrong ones one by one."""
    from packaging.requirements import Requirement

    versions: dict[str, str | None] = {}
    wrong: list[Finding] = []
    for text in metadata.requires("specforge") or ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = _version(requirement.name)
        versions[requirement.name] = version
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            found = {"package": requirement.name, "version": version, "expected": str(requirement.specifier)}
            said = f"{requirement.name} {version or 'is not installed'}; expected {requirement.specifier}"
            wrong.append(Finding("package", False, said, found))
    fine = len(versions) - len(wrong)
    shown = ", ".join(f"{name} {version}" for name, version in versions.items() if name.startswith("pytest"))
    yield Finding("packages", not wrong, f"{fine} of {len(versions)} as required ({shown})", {"versions": versions})
    yield from wrong


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _gpus() -> Iterator[Finding]:
    from specforge.backends.devices import visible_devices
    from specforge.measurement.environment import gpus

    names, devices = gpus(), visible_devices(os.environ, None)
    found = {"names": names, "visible": list(devices.ids), "variable": devices.variable}
    shown = "; ".join(dict.fromkeys(names or ()))
    text = f"{len(devices.ids)} visible ({', '.join(devices.ids)}): {shown}" if devices.ids else "none visible"
    yield Finding("GPUs", None, text, found)


def _sglang(launch_command: str | None) -> Callable[[], Iterator[Finding]]:
    from specforge.backends.flags import interpreter_of, sglang_version
    from specforge.backends.options import SGLANG_COMMAND

    try:
        command: Sequence[str] = shlex.split(launch_command) if launch_command else SGLANG_COMMAND
    except ValueError as error:
        raise UsageError(f"--launch-command: {launch_command!r} can't be split into words: {error}") from None

    def look() -> Iterator[Finding]:
        interpreter = interpreter_of(command)
        version = sglang_version(interpreter, {}) if interpreter is not None else None
        found = {"version": version, "interpreter": interpreter, "command": list(command)}
        if interpreter is None:
            text, ok = f"can't be told: {command[0]!r} is no Python, nor a script that names one", None
        elif version is None:
            text, ok = f"not installed for {interpreter}; --launch-command names another, --base-url needs none", None
        else:
            text, ok = f"{version} for {interpreter}", True
        yield Finding("SGLang", ok, text, found)

    return look


def _datasets() -> Iterator[Finding]:
    """By the Hub's cache: the rows themselves, not what the ``datasets`` package made of them."""
    from specforge.datasets.hub import cached_datasets
    from specforge.datasets.registry import definitions

    cached = cached_datasets()
    here = [
        name for name, definition in definitions().items() if all(part.dataset in cached for part in definition.parts)
    ]
    missing = [name for name in definitions() if name not in here]
    text = f"{len(here)} of {len(definitions())} cached"
    text += f": {', '.join(here)}; not: {', '.join(missing)}" if here and missing else ""
    yield Finding("datasets", None, text, {"cached": here, "not_cached": missing})


def _sandbox() -> Iterator[Finding]:
    from specforge.scoring.sandbox.probe import detect
    from specforge.scoring.sandbox.settings import SandboxSettings

    isolation = detect(SandboxSettings())
    text = f"{isolation.level} isolation: {isolation.reason}"
    yield Finding("sandbox", isolation.level != "none", text, isolation.as_record())


def _engine() -> Iterator[Finding]:
    """Starts the embedded engine, which is ready when it has made a token."""
    from specforge.backends.launch import Launcher
    from specforge.backends.options import EMBEDDED_COMMAND, LaunchOptions
    from specforge.engine import models
    from specforge.matrix import SpecConfig

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        options = LaunchOptions(
            model_path=str(models.target_path()),
            speculative_draft_model_path=str(models.eagle3_path()),
            launch_command=EMBEDDED_COMMAND,
            timeout_for_server_launch=60.0,
            log_dir=Path(folder),
        )
        try:
            Launcher(options).start(SpecConfig(1, 3, 1, 4)).stop()
        except ServerError as error:
            yield Finding("engine", False, " ".join(str(error).split()), {"error": str(error)})
            return
    seconds = time.monotonic() - began
    yield Finding("engine", True, f"starts, drafts and answers, {seconds:.1f} s with its end", {"seconds": seconds})

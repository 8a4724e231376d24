"""SGLang's command line: names, aliases, and which spelling the installed version knows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specforge.errors import UsageError

# Several spellings of one argument; the first is the one used here. Any spelling of the CUDA-graph limit counts as the
# same argument, although one server knows one of them alone.
_ALIASES = (
    ("--model-path", "--model"),
    ("--tp-size", "--tensor-parallel-size", "--tp"),
    ("--pp-size", "--pipeline-parallel-size", "--pp"),
    ("--dp-size", "--data-parallel-size", "--dp"),
    ("--ep-size", "--expert-parallel-size", "--ep"),
    ("--speculative-draft-model-path", "--speculative-draft-model"),
    ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"),
)
_CANONICAL = {alias: names[0] for names in _ALIASES for alias in names}

OLD_GRAPH_LIMIT = "--cuda-graph-max-bs"
NEW_GRAPH_LIMIT = "--cuda-graph-max-bs-decode"
# The newest version seen to take the old name alone, and the oldest seen to refuse it.
_LAST_OLD = (0, 5, 16)
_FIRST_NEW = (0, 5, 23)
_PROBE_SECONDS = 30.0
_HELP_SECONDS = 120.0


def canonical(name: str) -> str:
    """The one spelling of a flag that stands for all its aliases."""
    return _CANONICAL.get(name, name)


def given_flags(words: Sequence[str]) -> dict[str, str | None]:
    """The flags among ``words`` by canonical name, each with its last value; None for a flag without one."""
    found: dict[str, str | None] = {}
    for position, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word.partition("=")
        follower = words[position + 1] if position + 1 < len(words) else "--"
        found[canonical(name)] = value if equals else None if follower.startswith("--") else follower
    return found


def integer_flag(words: Sequence[str], name: str) -> int | None:
    """The value of an integer flag in ``--server-args``; None where it isn't there.

    Raises:
        UsageError: the value is no integer.
    """
    flags = given_flags(words)
    if name not in flags:
        return None
    try:
        return int(flags[name] or "")
    except ValueError:
        raise UsageError(f"--server-args: {name} is {flags[name]!r}; expected an integer") from None


@dataclass(frozen=True, slots=True)
class KnownFlags:
    """The spellings that a server's version takes, where versions differ."""

    graph_limit: str = NEW_GRAPH_LIMIT

    def after_refusal(self, exit_status: int | None, log: str) -> KnownFlags | None:
        """What to try when a server exited over a flag of ours; None where that was not the reason.

        argparse exits with 2 and names the flag, as unknown or (the old name, where several begin like it) ambiguous.
        """
        if exit_status != 2:
            return None
        if not re.search(rf"(unrecognized arguments|ambiguous option).*{self.graph_limit}\b", log):
            return None
        return KnownFlags(OLD_GRAPH_LIMIT if self.graph_limit == NEW_GRAPH_LIMIT else NEW_GRAPH_LIMIT)


def probe_flags(command: Sequence[str], environment: Mapping[str, str]) -> KnownFlags:
    """Asks the installation that ``command`` starts which spellings it takes.

    Its package's version tells in a moment; ``--help`` imports all of SGLang and is asked only where the version leaves
    it open. A command that can't be asked (a container, a scheduler, a script) is taken for a recent SGLang.
    """
    interpreter = interpreter_of(command)
    if interpreter is None:
        return KnownFlags()
    version = _parts(sglang_version(interpreter, environment))
    if version is None or version >= _FIRST_NEW:
        return KnownFlags()
    if version <= _LAST_OLD:
        return KnownFlags(OLD_GRAPH_LIMIT)
    help_text = _output([*command, "--help"], environment, _HELP_SECONDS)
    return KnownFlags() if help_text is None or NEW_GRAPH_LIMIT in help_text else KnownFlags(OLD_GRAPH_LIMIT)


def interpreter_of(command: Sequence[str]) -> str | None:
    """The Python that runs ``command``: named by it, or by the first line of the script that it names."""
    program = shutil.which(command[0])
    if program is None:
        return None
    if re.match(r"python[0-9.]*\Z", os.path.basename(program)):
        return program
    match = re.match(r"#!\s*(\S*python[0-9.]*)\s*\Z", _first_line(Path(program)))
    return match.group(1) if match else None


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(512).decode("utf-8", "replace")
    except OSError:
        return ""


def sglang_version(interpreter: str, environment: Mapping[str, str]) -> str | None:
    """The version of SGLang that a Python has, asked of the package's metadata alone; None where it has none."""
    code = "import importlib.metadata as m; print(m.version('sglang'))"
    text = _output([interpreter, "-c", code], environment, _PROBE_SECONDS)
    return text.strip() if text is not None else None


def _parts(version: str | None) -> tuple[int, ...] | None:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version or "")
    return tuple(int(part) for part in match.groups()) if match else None


def _output(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> str | None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

"""SGLang's command line, as far as a scripted server needs it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from tests.support.scripted.script import Script, Speculation

_ALIASES = {
    "--model": "--model-path",
    "--tensor-parallel-size": "--tp-size",
    "--tp": "--tp-size",
    "--data-parallel-size": "--dp-size",
    "--dp": "--dp-size",
    "--speculative-draft-model": "--speculative-draft-model-path",
}
_GRAPH_FLAG_RENAMED_IN = (0, 5, 17)


class UnknownFlag(Exception):
    """A flag that this version of SGLang does not take."""


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """Flags and their values under SGLang's main names; the last one wins, a bare switch is "true"."""
    flags: dict[str, str] = {}
    name = ""
    for word in arguments:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            name = _ALIASES.get(name, name)
            flags[name] = value or "true"
        elif name:
            flags[name] = word if flags[name] == "true" else f"{flags[name]} {word}"
    return flags


def graph_flag(version: str) -> str:
    """The CUDA-graph limit's name in a version of SGLang."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    return "--cuda-graph-max-bs" if numbers < _GRAPH_FLAG_RENAMED_IN else "--cuda-graph-max-bs-decode"


def check(flags: dict[str, str], version: str) -> None:
    """Raises UnknownFlag for the CUDA-graph limit under the name of another version."""
    for name in ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"):
        if name in flags and name != graph_flag(version):
            raise UnknownFlag(name)


def usage(version: str) -> str:
    """What ``--help`` prints."""
    return (
        "usage: launch_server.py [-h] --model-path MODEL_PATH [--host HOST] [--port PORT]\n"
        f"  [--max-running-requests N] [{graph_flag(version)} N] [--random-seed N] [--enable-metrics]\n"
        "  [--speculative-algorithm NAME] [--speculative-draft-model-path PATH] [--speculative-num-steps N]\n"
        "  [--speculative-eagle-topk N] [--speculative-num-draft-tokens N]\n"
    )


def apply(script: Script, flags: dict[str, str]) -> Script:
    """The script as the flags make it: the model, speculation and limits are theirs."""
    wire = dataclasses.replace(
        script.wire,
        metrics="--enable-metrics" in flags,
        api_key=flags.get("--api-key", script.wire.api_key),
        context_length=int(flags.get("--context-length", script.wire.context_length)),
        max_running_requests=int(flags.get("--max-running-requests", script.wire.max_running_requests)),
    )
    return dataclasses.replace(
        script, model=flags.get("--model-path", script.model), wire=wire, speculation=speculation(flags)
    )


def speculation(flags: dict[str, str]) -> Speculation | None:
    """The speculation that the flags ask for, resolved as SGLang does: NEXTN is EAGLE, one branch fixes D."""
    algorithm = flags.get("--speculative-algorithm")
    if algorithm is None:
        return None
    algorithm = algorithm.upper()
    steps = int(flags.get("--speculative-num-steps", 0))
    topk = int(flags.get("--speculative-eagle-topk", 1))
    drafts = int(flags.get("--speculative-num-draft-tokens", steps + 1))
    if algorithm != "NGRAM":
        steps = steps or 3
        drafts = steps + 1 if topk == 1 else drafts
    return Speculation(
        algorithm="EAGLE" if algorithm == "NEXTN" else algorithm,
        num_steps=0 if algorithm == "NGRAM" else steps,
        topk=topk,
        num_draft_tokens=drafts,
        draft_model_path=flags.get("--speculative-draft-model-path"),
    )


def arguments(flags: dict[str, str]) -> dict[str, Any]:
    """The flags as ``/server_info`` reports them."""
    return {name.lstrip("-").replace("-", "_"): _typed(value) for name, value in flags.items()}


def _typed(value: str) -> Any:
    if value == "true":
        return True
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value

"""What a record says of where it was made."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specforge import __version__
from specforge.client.endpoint import without_user

_SERVER_SETTINGS = (
    "version",
    "model_path",
    "dtype",
    "quantization",
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "attention_backend",
    "mem_fraction_static",
    "disable_radix_cache",
    "random_seed",
    "max_running_requests",
    "context_length",
    "device",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_draft_model_path",
)
_SECRET_FLAGS = ("--api-key", "--judge-api-key", "--header")
_KEY_WITHIN = re.compile(r"(--[\w-]*api-key[=\s]\s*)\S+")


def server_settings(info: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The part of ``/server_info`` that decides what was measured; None where the server doesn't say."""
    if info is None:
        return None
    return {name: info[name] for name in _SERVER_SETTINGS if name in info}


def attached_config(info: Mapping[str, Any] | None, batch_size: int | None) -> dict[str, Any]:
    """A record's ``config`` for a server that was attached to: what it says it runs; null where it doesn't say."""
    algorithm = (info or {}).get("speculative_algorithm")
    runs = algorithm is not None and str(algorithm).upper() != "NONE"

    def said(name: str) -> int | None:
        if info is None:
            return None
        return int(info.get(name) or 0) if runs else 0

    return {
        "batch_size": batch_size,
        "num_steps": said("speculative_num_steps"),
        "topk": said("speculative_eagle_topk"),
        "num_draft_tokens": said("speculative_num_draft_tokens"),
        "algorithm": algorithm if runs else None,
    }


def label_of(*, embedded: bool, samples: bool) -> str | None:
    """What keeps a table of the embedded engine, or of sample rows, from being taken for one of the real thing."""
    return ", ".join((["embedded engine"] if embedded else []) + (["sample data"] if samples else [])) or None


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """A command line with keys' and headers' values starred out, and no users in addresses; so inside of options."""
    hidden: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        flag, equals, _ = argument.partition("=")
        if before in _SECRET_FLAGS:
            argument = "***"
        elif equals and flag in _SECRET_FLAGS:
            argument = f"{flag}=***"
        hidden.append(without_user(_KEY_WITHIN.sub(r"\1***", argument)))
    return hidden


def gpus() -> list[str] | None:
    """The names of this machine's GPUs, by ``nvidia-smi``; None where there is no such program."""
    if shutil.which("nvidia-smi") is None:
        return None
    answer = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    return None if answer is None else answer.splitlines()


def git_commit(folder: Path) -> dict[str, Any] | None:
    """The commit of the checkout around ``folder`` and whether it was changed since; None outside one."""
    commit = _output("git", "-C", str(folder), "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"id": commit, "dirty": bool(_output("git", "-C", str(folder), "status", "--porcelain", "-uno"))}


def machine() -> dict[str, Any]:
    """The machine and the Python that the client ran on."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "python": platform.python_version(),
        "specforge": __version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

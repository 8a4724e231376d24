"""The command line: SGLang's flags, those honoured and those only known."""

import argparse
import json
import random
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from specforge.errors import UsageError

ALGORITHMS = ("EAGLE3", "STANDALONE", "NGRAM")

_SPECULATIVE_SLOTS = 48
"""SGLang's `--max-running-requests` with speculation, where none is given."""
_SLOTS = 64

_SILENT = ("cuda-graph-max-bs", "cuda-graph-max-bs-decode", "enable-metrics", "device", "disable-cuda-graph")
"""Flags of every launch that mean nothing here, and change nothing in what is measured: not worth a warning."""

_ARITIES: dict[str, dict[str, Any]] = {
    "none": {"action": "store_true"},
    "one": {},
    "some": {"nargs": "+"},
    "any": {"nargs": "*"},
    "optional": {"nargs": "?"},
}


@dataclass(frozen=True)
class Arguments:
    """What the engine was asked to be. Names are SGLang's."""

    model_path: str
    tokenizer_path: str
    served_model_name: str
    host: str
    port: int
    max_running_requests: int
    random_seed: int
    enable_metrics: bool
    api_key: str | None
    context_length: int | None
    """Most tokens of a request; None: what the model's configuration says."""
    max_total_tokens: int | None
    """Most tokens that the prefix cache keeps; None: as many as fit into a fixed share of memory."""
    disable_radix_cache: bool
    enable_cache_report: bool
    sampling_defaults: str
    log_level: str
    speculative_algorithm: str | None
    speculative_draft_model_path: str | None
    speculative_num_steps: int | None
    speculative_eagle_topk: int | None
    speculative_num_draft_tokens: int | None
    warnings: tuple[str, ...]
    """One line for each flag that is not honoured, or was changed."""

    def as_json(self) -> dict[str, Any]:
        """The resolved arguments, for `/server_info`. The key is not shown."""
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "warnings"}
        return {**shown, "api_key": None if self.api_key is None else "<redacted>"}


def parse(argv: Sequence[str]) -> Arguments:
    """Read a command line as SGLang 0.5.23 reads it.

    Raises UsageError for a combination that can't be run; an unknown flag or a malformed value ends the process
    with argparse's message and exit code 2.
    """
    parser, known_only = _parser()
    given = vars(parser.parse_args(argv))
    warnings = [
        f"--{name} has no effect: the embedded engine does not implement it"
        for name in known_only
        if given.get(_destination(name)) not in (None, False) and name not in _SILENT
    ]
    if given["dtype"] not in ("auto", "float32"):
        warnings.append(f"--dtype {given['dtype']} has no effect: the embedded engine computes in float32")
    given["model_path"] = given["model_path"].rstrip("/") or "/"
    speculative, changes = _speculative(given)
    slots = given["max_running_requests"]
    if slots is None:
        slots = _SPECULATIVE_SLOTS if speculative["speculative_algorithm"] else _SLOTS
    if slots < 1:
        raise UsageError(f"--max-running-requests: expected at least 1, found {slots}")
    if given["context_length"] is not None and given["context_length"] < 2:
        raise UsageError(f"--context-length: expected at least 2, found {given['context_length']}")
    if not 0 <= given["port"] < 1 << 16:
        raise UsageError(f"--port: expected a number below 65536, found {given['port']}")
    seed = given["random_seed"]
    honoured = {
        **{field.name: given.get(field.name) for field in fields(Arguments)},
        **speculative,
        "tokenizer_path": given["tokenizer_path"] or given["model_path"],
        "served_model_name": given["served_model_name"] or given["model_path"],
        "max_running_requests": slots,
        "random_seed": random.randrange(1 << 30) if seed is None else seed,
        "warnings": (*warnings, *changes),
    }
    return Arguments(**honoured)


def _parser() -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser, and the names of the flags that are known but not honoured."""
    parser = argparse.ArgumentParser(
        prog="python -m specforge.engine",
        description="The embedded engine: SGLang's protocol and flags, in NumPy. Flags not shown here, but known to "
        "SGLang 0.5.23, are accepted with a warning.",
        allow_abbrev=False,
    )
    honoured: set[str] = set()

    def add(*names: str, **settings: Any) -> None:
        honoured.update(names)
        parser.add_argument(*names, **settings)

    add("--model-path", "--model", required=True, help="a Hugging Face folder of the Llama architecture")
    add("--tokenizer-path", help="a folder with tokenizer.json (default: the model's)")
    add("--served-model-name", help="the name /v1/models gives (default: the model path)")
    add("--host", default="127.0.0.1", help="the address to listen on")
    add("--port", type=int, default=30000, help="the port to listen on")
    add("--max-running-requests", type=int, help="requests that run at once")
    add("--random-seed", type=int, help="the seed of requests that give none (default: random)")
    add("--enable-metrics", action="store_true", help="add timings to meta_info")
    add("--api-key", help="what clients must present, but for /ready and the health pair")
    add("--context-length", type=int, help="most tokens of a request (default: the model's)")
    add("--max-total-tokens", type=int, help="most tokens the prefix cache keeps")
    add("--disable-radix-cache", action="store_true", help="reuse no prefixes")
    add("--enable-cache-report", action="store_true", help="tell cached tokens in the usage of chat completions")
    add("--sampling-defaults", choices=("model", "openai"), default="model", help="what fills in chat parameters")
    add("--dtype", default="auto", help="accepted; arithmetic is float32")
    add("--log-level", choices=("debug", "info", "warning", "error", "critical"), default="info", help="what to log")
    add("--speculative-algorithm", type=str.upper, help=", ".join(ALGORITHMS))
    add("--speculative-draft-model-path", "--speculative-draft-model", help="the draft's folder")
    add("--speculative-num-steps", type=int, help="drafting steps")
    add("--speculative-eagle-topk", type=int, help="branches a step")
    add("--speculative-num-draft-tokens", type=int, help="nodes verified at once, the root included")
    known_only = {name: arity for name, arity in _sglang_flags() if f"--{name}" not in honoured}
    for name, arity in known_only.items():
        add(f"--{name}", dest=_destination(name), help=argparse.SUPPRESS, **_ARITIES[arity])
    return parser, list(known_only)


def _destination(name: str) -> str:
    return "known_" + name.replace("-", "_")


def _sglang_flags() -> Iterator[tuple[str, str]]:
    """Every long option of SGLang's, with its arity; and the older name of one that launchers still use."""
    text = resources.files("specforge.engine").joinpath("sglang_flags.json").read_text("utf-8")
    for arity, names in json.loads(text).items():
        for group in names.split():
            for name in group.split("|"):
                yield name, arity
    yield "cuda-graph-max-bs", "one"


def _speculative(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The speculative settings as SGLang resolves them, and what was changed."""
    names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    algorithm, draft = given["speculative_algorithm"], given["speculative_draft_model_path"]
    steps, topk, nodes = (given[name] for name in names)
    settings = {"speculative_algorithm": algorithm, "speculative_draft_model_path": draft}
    if algorithm is None:
        return settings | dict.fromkeys(names), []
    if algorithm not in ALGORITHMS:
        raise UsageError(f"--speculative-algorithm: expected {', '.join(ALGORITHMS)}, found {algorithm}")
    if algorithm == "NGRAM":
        nodes = 12 if nodes is None else nodes
        if nodes < 2:
            raise UsageError(f"--speculative-num-draft-tokens: expected at least 2, found {nodes}")
        return settings | dict(zip(names, (0, 10, nodes), strict=True)), []
    if draft is None:
        raise UsageError(f"--speculative-draft-model-path: {algorithm} needs a draft, found none")
    shape = (steps, topk, nodes)
    if shape == (None, None, None):
        shape = steps, topk, nodes = 5, 4, 8
    if None in shape:
        missing = ", ".join("--" + name.replace("_", "-") for name in names if given[name] is None)
        raise UsageError(f"{missing}: give all of steps, topk and draft tokens, or none")
    if steps < 1 or topk < 1 or nodes < 2:
        raise UsageError(
            f"--speculative-num-steps, -eagle-topk, -num-draft-tokens: expected at least 1, 1, 2, found {shape}"
        )
    changes = []
    if topk == 1 and nodes != steps + 1:
        changes.append(f"--speculative-num-draft-tokens is {steps + 1}, not {nodes}: all that a chain has")
        nodes = steps + 1
    room = topk + (steps - 1) * topk * topk
    if nodes - 1 > room:
        raise UsageError(
            f"--speculative-num-draft-tokens: found {nodes}, expected at most {room + 1} ({steps} steps, topk {topk})"
        )
    return settings | dict(zip(names, (steps, topk, nodes), strict=True)), changes


def redacted(argv: Sequence[str], secret: str | None) -> str:
    """The command line in one string, without the key."""
    return " ".join(shlex.quote(part if not secret else part.replace(secret, "<redacted>")) for part in argv)


def model_folder(path: str) -> Path:
    """The folder a path flag names; `~` is the home directory."""
    return Path(path).expanduser()

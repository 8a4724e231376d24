"""The command line's options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from specforge.matrix import DEFAULT_BENCHMARKS, DEFAULT_CONFIGS
from specforge.scoring.sandbox.settings import KINDS, SandboxSettings

PREFIX = "specforge_"
"""What the options' destinations start with, so that they don't meet another plugin's."""

_TITLE = """\
speculative decoding benchmarks

Paths go before the options that take lists. Examples:

  pytest bench_tests         # no model, no server: sample data, embedded engine

  pytest bench_tests --model-path MODEL --speculative-draft-model-path DRAFT \\
    --config-list 1,0,0,0 1,3,1,4 \\
    --benchmark-list mtbench gsm8k:5 ceval:5:accountant

  pytest bench_tests --base-url http://127.0.0.1:30000 \\
    --config-list 8,0,0,0 --benchmark-list gsm8k:200

  pytest bench_tests --matrix nightly.toml --dry-run

Options"""  # pytest puts a colon behind it, and has no other place for examples

_Add = Callable[..., None]
_LIST: dict[str, Any] = {"nargs": "+", "action": "extend", "default": None}


def add_options(parser: pytest.Parser) -> None:
    """Adds every option of the harness to pytest's parser."""
    add_all = parser.getgroup("specforge", _TITLE).addoption
    for add_section in _SECTIONS.values():
        add_section(_named(add_all))


def argument_parser(**settings: Any) -> argparse.ArgumentParser:
    """A parser of the harness's options alone, a group a section, with the settings of an ``ArgumentParser``."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, **settings)
    for title, add_section in _SECTIONS.items():
        add_section(_named(parser.add_argument_group(title).add_argument))
    return parser


def _named(add_option: Callable[..., Any]) -> _Add:
    """Adds an option under a destination of its own, to whatever has the arguments of ``add_argument``."""

    def add(*names: str, help: str, **kwargs: Any) -> None:
        plain = names[0].lstrip("-").replace("-", "_")
        if kwargs.get("action", "store") == "store" and "choices" not in kwargs:
            kwargs.setdefault("metavar", plain.rpartition("_")[2].upper())
        add_option(*names, help=help, dest=PREFIX + plain, **kwargs)

    return add


def _add_matrix(add: _Add) -> None:
    add(
        "--config-list",
        **_LIST,
        metavar="CONFIG",
        help="configurations batch-size,num-steps,topk,num-draft-tokens; b,0,0,0 is the target alone, b,0,0,D is for "
        f"algorithms without steps (NGRAM). Default: {' '.join(DEFAULT_CONFIGS)}",
    )
    add(
        "--benchmark-list",
        **_LIST,
        metavar="BENCHMARK",
        help=f"benchmarks name[:num-prompts[:subset,...]]. Default: {' '.join(DEFAULT_BENCHMARKS)}",
    )
    add(
        "--matrix",
        default=None,
        metavar="FILE",
        help="TOML or YAML with any of these options by their long names, and a table [benchmark.NAME] for one "
        "benchmark's num-prompts, subset and max-new-tokens; or the JSON of a run, to repeat it. The command line wins",
    )
    add(
        "--dry-run",
        action="store_true",
        help="say what would be measured and started, and how many requests that is; start and write nothing",
    )


def _add_server(add: _Add) -> None:
    add("--model-path", "--model", default=None, metavar="MODEL", help="model folder or Hub id to launch SGLang with")
    add(
        "--speculative-algorithm",
        default=None,
        metavar="NAME",
        help="EAGLE3 (default when a configuration has steps), EAGLE, STANDALONE, NGRAM, or another of SGLang's",
    )
    add(
        "--speculative-draft-model-path",
        "--speculative-draft-model",
        default=None,
        metavar="DRAFT",
        help="draft model folder or Hub id",
    )
    add("--host", default="127.0.0.1", help="address of the server (default: 127.0.0.1)")
    add("--port", type=int, default=None, help="port of the server (default: a free one; 30000 when attaching)")
    add("--skip-launch-server", action="store_true", help="measure the server that runs at --host and --port")
    add(
        "--base-url",
        nargs="+",
        default=None,
        metavar="URL",
        help="measure the server that runs there; https and a path are fine; several: one for each worker (-n)",
    )
    add("--shared-server", action="store_true", help="let several workers (-n) load one server")
    add("--gpus", default=None, metavar="IDS", help="devices to use, 0,1,2,3; divided among workers (-n)")
    add("--api-key", default=None, metavar="KEY", help="key that the server wants")
    add("--header", action="append", default=None, metavar="'NAME: VALUE'", help="extra header of each request")
    add(
        "--launch-command",
        default=None,
        metavar="COMMAND",
        help="what SGLang's flags are appended to (default: python -m sglang.launch_server)",
    )
    add("--stop-command", default=None, metavar="COMMAND", help="ends what --launch-command started in a container")
    add(
        "--timeout-for-server-launch",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="limit for a server's start (default: 600)",
    )
    add("--tp-size", "--tp", type=int, default=None, metavar="N", help="tensor parallel size")
    add("--ep-size", type=int, default=None, metavar="N", help="expert parallel size")
    add("--mem-fraction-static", type=float, default=None, metavar="SHARE", help="share of GPU memory for the model")
    add("--attention-backend", default=None, metavar="NAME", help="SGLang's attention backend")
    add("--dtype", default=None, help="data type of the weights")
    add("--quantization", default=None, metavar="NAME", help="quantization method")
    add("--trust-remote-code", action="store_true", help="let the server run code from the model's repository")
    add("--disable-radix-cache", action="store_true", help="serve without the prefix cache")
    add("--server-args", default=None, metavar="'FLAGS'", help="any other SGLang flags, untouched; they win")


def _add_requests(add: _Add) -> None:
    add("--num-prompts", type=int, default=None, metavar="N", help="prompts of the benchmarks that name no number")
    add(
        "--max-new-tokens",
        default=None,
        metavar="N",
        help="token limit of an answer, or NAME=N,... for single benchmarks (default: the dataset's)",
    )
    add("--few-shot", type=int, default=None, metavar="N", help="worked examples in a prompt (default: the dataset's)")
    add("--temperature", type=float, default=None, help="sampling temperature (default: 0)")
    add("--top-p", type=float, default=None, help="nucleus sampling (default: 1)")
    add("--top-k", type=int, default=None, help="top-k sampling (default: -1, off)")
    add(
        "--sampling",
        choices=("stated", "model"),
        default="stated",
        help="'stated' (default) sends every sampling parameter; 'model' leaves them to the model's own defaults",
    )
    add("--extra-body", default=None, metavar="JSON", help="fields added to each request")
    add("--chat-template-kwargs", default=None, metavar="JSON", help="arguments of the chat template")
    add("--enable-thinking", action="store_true", help="short for --chat-template-kwargs '{\"enable_thinking\": true}'")
    add("--stream", action="store_true", help="stream the answers: time to first token as a user sees it")
    add("--seed", type=int, default=42, help="seed of the drawing, of the requests and of the server (default: 42)")
    add("--rounds", type=int, default=None, metavar="N", help="measured rounds of each cell (default: 1)")
    add("--max-failed", type=int, default=0, metavar="N", help="failed requests that a cell may have (default: 0)")
    add(
        "--request-timeout", type=float, default=3600.0, metavar="SECONDS", help="limit for one request (default: 3600)"
    )


def _add_data(add: _Add) -> None:
    add(
        "--dataset-path",
        action="append",
        default=None,
        metavar="NAME=FILE",
        help="local JSONL, JSON, CSV or Parquet with the Hub's columns, or a folder; NAME.train=FILE for few-shots",
    )
    add(
        "--samples",
        action="store_true",
        help="the sample rows that the project ships, instead of the Hub's (the embedded engine always takes them)",
    )
    add("--dataset-revision", default=None, metavar="REVISION", help="Hub revision, or NAME=REVISION,...")


def _add_scoring(add: _Add) -> None:
    add("--judge-base-url", default=None, metavar="URL", help="OpenAI-compatible endpoint of a judge model")
    add("--judge-model", default=None, metavar="NAME", help="the judge's name there")
    add("--judge-api-key", default=None, metavar="KEY", help="the judge's key")
    add("--allow-code-execution", action="store_true", help="run model-written code, in a sandbox, to score it")
    add("--unsafe-code-execution", action="store_true", help="also where nothing isolates it")
    add("--code-sandbox", default="auto", metavar="KIND", help=f"{', '.join(KINDS)} (default: auto)")
    code = SandboxSettings()
    add(
        "--code-timeout",
        type=float,
        default=code.wall_s,
        metavar="SECONDS",
        help=f"limit for one program (default: {code.wall_s:g})",
    )
    add(
        "--code-memory",
        type=int,
        default=code.memory_mb,
        metavar="MIB",
        help=f"memory of one program (default: {code.memory_mb})",
    )
    add("--code-workers", type=int, default=None, metavar="N", help="programs at a time (default: one a processor)")


def _add_gate(add: _Add) -> None:
    add(
        "--fail-on",
        **_LIST,
        metavar="METRIC[@CELL]:TOLERANCE",
        help="fail where a metric is worse than in the run of --benchmark-compare[=RUN], by more than this and beyond "
        "noise: throughput:5%% acceptance_length:2%% accuracy:2pp throughput@4,3,1,4:3%%",
    )
    add("--fail-on-undecided", action="store_true", help="fail also where noise leaves it open")
    add(
        "--lossless-against",
        default=None,
        metavar="RUN",
        help="saved run whose target-only cells the outputs must equal",
    )


def _add_record(add: _Add) -> None:
    add("--name", default=None, help="name of the run, part of its file's name")
    add("--note", default=None, help="free text kept in the record")
    add("--output-dir", default="results", metavar="DIR", help="where records, rows and logs go (default: ./results)")
    add(
        "--resume",
        default=None,
        metavar="RUN",
        help="goes on with a run that was cut off: its JSON, or the folder beside it. Only cells that are missing, "
        "failed or partial are measured, into the same record",
    )
    add("--report", default=None, metavar="FILE", help="write one HTML page of the run when it ends")


_SECTIONS: Mapping[str, Callable[[_Add], None]] = {
    "The matrix": _add_matrix,
    "The server": _add_server,
    "The requests": _add_requests,
    "The data": _add_data,
    "Scoring": _add_scoring,
    "The gate": _add_gate,
    "The record": _add_record,
}


def any_given(config: pytest.Config) -> bool:
    """Whether an option of the harness differs from its default, be it on the command line, in a file or a variable."""
    return any(config.getoption(action.dest) != action.default for action in argument_parser()._actions)


def option_values(config: pytest.Config) -> dict[str, Any]:
    """Every option's value, by its destination."""
    return {action.dest: config.getoption(action.dest) for action in argument_parser()._actions}


def option(config: pytest.Config, name: str) -> Any:
    """An option's value, by its long name with underscores."""
    return config.getoption(PREFIX + name)

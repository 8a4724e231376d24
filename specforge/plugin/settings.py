"""From the command line's words to checked values: every mistake that can be known is found here."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specforge.backends.command import check_launch
from specforge.backends.options import EMBEDDED_COMMAND, SGLANG_COMMAND, LaunchOptions
from specforge.client.endpoint import Endpoint, parse_header
from specforge.client.sampling import Sampling
from specforge.datasets import LoadOptions, ScoringOptions, known_names, parse_dataset_paths, resolve
from specforge.errors import UsageError
from specforge.flags import at_least, read_sampling
from specforge.matrix import (
    DEFAULT_BENCHMARKS,
    DEFAULT_CONFIGS,
    BenchmarkSpec,
    SpecConfig,
    parse_benchmarks,
    parse_configs,
)
from specforge.plugin.token_limits import TokenLimits
from specforge.scoring.sandbox.settings import SandboxSettings

_SGLANG_PORT = 30000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A run, as the user asked for it.

    Attributes:
        configs, benchmarks: the matrix's axes.
        backend: ``launch``, ``attach`` or ``embedded``.
        launch: how servers are launched; None when attaching.
        endpoints: the servers to attach to; empty when launching.
        gpus: the devices of ``--gpus``; None for all that are visible.
        shared_server: whether several workers may load one server.
        sampling: what each request states.
        load: how datasets are loaded.
        scoring: what scorers may do.
        rounds, max_failed, request_timeout, stream: as on the command line.
        max_new_tokens: token limits of answers.
        output_dir, name, note: of the record.
    """

    configs: tuple[SpecConfig, ...]
    benchmarks: tuple[BenchmarkSpec, ...]
    backend: str
    launch: LaunchOptions | None
    endpoints: tuple[Endpoint, ...]
    gpus: str | None
    shared_server: bool
    sampling: Sampling
    load: LoadOptions
    scoring: ScoringOptions
    rounds: int | None
    max_failed: int
    request_timeout: float
    max_new_tokens: TokenLimits
    stream: bool
    output_dir: Path
    name: str | None
    note: str | None

    @property
    def largest_tree(self) -> int:
        """The largest num-draft-tokens of the run: every configuration is clamped alike."""
        return max(config.num_draft_tokens for config in self.configs)


def read_settings(get: Callable[[str], Any]) -> Settings:
    """Reads and checks every option.

    Args:
        get: gives an option's value by its name with underscores.

    Raises:
        UsageError: naming the flag, what was found and what was expected.
    """
    config_texts = get("config_list") or DEFAULT_CONFIGS
    benchmark_texts = get("benchmark_list") or DEFAULT_BENCHMARKS
    _refuse_paths("--config-list", config_texts, "--config-list 1,0,0,0 1,3,1,4")
    _refuse_paths("--benchmark-list", benchmark_texts, "--benchmark-list gsm8k:5")
    configs = parse_configs(config_texts)
    benchmarks = _with_default_size(parse_benchmarks(benchmark_texts), get("num_prompts"))
    for spec in benchmarks:
        resolve(spec)
    for flag, least in (("rounds", 1), ("num_prompts", 1), ("few_shot", 0), ("max_failed", 0), ("tp_size", 1)):
        at_least(flag, get(flag), least)
    for flag in ("request_timeout", "timeout_for_server_launch"):
        if not 0 < get(flag) < math.inf:
            raise UsageError(f"--{flag.replace('_', '-')}: {get(flag):g} is no finite number above 0")
    if get("port") is not None and not 0 < get("port") < 65536:
        raise UsageError(f"--port: {get('port')} is not a port; expected 1 to 65535")
    endpoints = _endpoints(get)
    backend = "attach" if endpoints else ("launch" if get("model_path") else "embedded")
    launch = None if endpoints else _launch_options(get, embedded=backend == "embedded")
    if launch is not None:
        for config in configs:
            check_launch(config, launch)
    dataset_paths = parse_dataset_paths(get("dataset_path") or ())
    return Settings(
        configs=tuple(configs),
        benchmarks=tuple(benchmarks),
        backend=backend,
        launch=launch,
        endpoints=endpoints,
        gpus=get("gpus"),
        shared_server=get("shared_server"),
        sampling=read_sampling(get),
        load=LoadOptions(
            seed=get("seed"),
            dataset_paths=dataset_paths,
            revision=get("dataset_revision"),
            samples=backend == "embedded" or get("samples"),
            few_shot=get("few_shot"),
        ),
        scoring=ScoringOptions(
            judge_base_url=get("judge_base_url"),
            judge_model=get("judge_model"),
            judge_api_key=get("judge_api_key"),
            allow_code_execution=get("allow_code_execution"),
            sandbox=SandboxSettings(
                kind=get("code_sandbox"),
                unsafe=get("unsafe_code_execution"),
                wall_s=get("code_timeout"),
                memory_mb=get("code_memory"),
                workers=get("code_workers"),
            ),
        ),
        rounds=get("rounds"),
        max_failed=get("max_failed"),
        request_timeout=get("request_timeout"),
        max_new_tokens=TokenLimits.parse(get("max_new_tokens")),
        stream=get("stream"),
        output_dir=Path(get("output_dir")).expanduser(),
        name=get("name"),
        note=get("note"),
    )


def _refuse_paths(flag: str, texts: Sequence[str], example: str) -> None:
    """A path behind a list option is taken for one of its values, and pytest would collect everything instead."""
    for text in texts:
        if text.partition(":")[0].lower() in known_names():
            continue  # a folder beside may well be called like a dataset
        if "::" in text or text.endswith(".py") or os.sep in text or os.path.exists(text):
            raise UsageError(
                f"{flag}: {text!r} is a path; paths go before options that take lists: pytest {text} {example}"
            )


def _with_default_size(specs: Sequence[BenchmarkSpec], size: int | None) -> list[BenchmarkSpec]:
    return [replace(spec, num_prompts=spec.num_prompts or size) for spec in specs]


def _endpoints(get: Callable[[str], Any]) -> tuple[Endpoint, ...]:
    urls: list[str] = list(get("base_url") or ())
    if not urls and get("skip_launch_server"):
        urls = [f"http://{get('host')}:{get('port') or _SGLANG_PORT}"]
    headers = tuple(parse_header(text) for text in get("header") or ())
    return tuple(Endpoint.parse(url, get("api_key"), headers) for url in urls)


def _launch_options(get: Callable[[str], Any], *, embedded: bool) -> LaunchOptions:
    draft = get("speculative_draft_model_path")
    model_path, default_command = get("model_path"), SGLANG_COMMAND
    if embedded:
        from specforge.engine import models

        model_path, default_command = str(models.target_path()), EMBEDDED_COMMAND
        drafts = {"EAGLE3": models.eagle3_path, "STANDALONE": models.standalone_path}
        shipped = drafts.get((get("speculative_algorithm") or "EAGLE3").upper())
        draft = draft or (str(shipped()) if shipped is not None else None)
    return LaunchOptions(
        model_path=model_path,
        speculative_algorithm=get("speculative_algorithm"),
        speculative_draft_model_path=draft,
        host=get("host"),
        port=get("port"),
        launch_command=_words("--launch-command", get("launch_command")) or default_command,
        stop_command=_words("--stop-command", get("stop_command")),
        timeout_for_server_launch=get("timeout_for_server_launch"),
        tp_size=get("tp_size"),
        mem_fraction_static=get("mem_fraction_static"),
        attention_backend=get("attention_backend"),
        dtype=get("dtype"),
        quantization=get("quantization"),
        trust_remote_code=get("trust_remote_code"),
        ep_size=get("ep_size"),
        disable_radix_cache=get("disable_radix_cache"),
        server_args=_words("--server-args", get("server_args")),
        seed=get("seed"),
        api_key=get("api_key"),
        log_dir=Path(get("output_dir")).expanduser(),
    )


def _words(flag: str, text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise UsageError(f"{flag}: {text!r} can't be split into words: {error}") from None

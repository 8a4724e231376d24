"""From a configuration and the user's options to the server's command line. Starts nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from specforge.backends.flags import KnownFlags, canonical, given_flags, integer_flag
from specforge.backends.options import LaunchOptions
from specforge.errors import UsageError
from specforge.matrix import SpecConfig

_DRAFT_NEEDED = frozenset({"EAGLE", "EAGLE3", "STANDALONE", "DFLASH"})
_STEPS_NEEDED = frozenset({"EAGLE", "EAGLE3", "STANDALONE", "NEXTN", "FROZEN_KV_MTP"})
_NO_STEPS = frozenset({"NGRAM"})
# What a configuration or an option of its own says; in --server-args it would make a cell's id untrue.
_OWNED = {
    "--speculative-algorithm": "--speculative-algorithm",
    "--speculative-num-steps": "--config-list",
    "--speculative-eagle-topk": "--config-list",
    "--speculative-num-draft-tokens": "--config-list",
}


def settled(options: LaunchOptions) -> LaunchOptions:
    """The options with what ``--server-args`` overrides put in its place, and ``~`` in paths expanded.

    Raises:
        UsageError: ``--server-args`` has a flag that belongs to a configuration, or a malformed value.
    """
    words = options.server_args
    flags = given_flags(words)
    for name, owner in _OWNED.items():
        if name in flags:
            raise UsageError(f"--server-args: {name} is set there; give it with {owner}, which the records go by")
    port = integer_flag(words, "--port")
    seed = integer_flag(words, "--random-seed")
    draft = flags.get("--speculative-draft-model-path") or options.speculative_draft_model_path
    return replace(
        options,
        model_path=_expanded(flags.get("--model-path") or options.model_path),
        speculative_draft_model_path=_expanded(draft) if draft else None,
        host=flags.get("--host") or options.host,
        port=options.port if port is None else port,
        seed=options.seed if seed is None else seed,
        api_key=flags.get("--api-key") or options.api_key,
    )


def check_launch(config: SpecConfig, options: LaunchOptions) -> None:
    """Everything about a launch that can be known to be wrong before a server is started.

    Raises:
        UsageError: one line naming the flag.
    """
    options = settled(options)
    algorithm_for(config, options)
    if not options.launch_command:
        raise UsageError("--launch-command is empty; expected a command that SGLang's flags can be appended to")
    if options.stop_command:
        return  # the server runs elsewhere (a container), where paths are not this machine's
    _check_folder("--model-path", options.model_path)
    if options.speculative_draft_model_path is not None and not config.is_target_only:
        _check_folder("--speculative-draft-model-path", options.speculative_draft_model_path)


def algorithm_for(config: SpecConfig, options: LaunchOptions) -> str | None:
    """The speculative algorithm of a configuration, in capitals; None where nothing is drafted.

    Without ``--speculative-algorithm`` it is EAGLE3 where there are steps and NGRAM where there are none.

    Raises:
        UsageError: the algorithm and the configuration's steps don't go together, or the draft model is missing.
    """
    if config.is_target_only:
        return None
    asked = options.speculative_algorithm
    algorithm = (asked or ("EAGLE3" if config.num_steps else "NGRAM")).upper()
    shape = f"batch-size,0,0,{config.num_draft_tokens or 'num-draft-tokens'}"
    if config.num_steps and algorithm in _NO_STEPS:
        raise UsageError(
            f"--speculative-algorithm {asked}: it has no draft steps, which {config} asks for; expected {shape}"
        )
    if not config.num_steps and algorithm in _STEPS_NEEDED:
        raise UsageError(
            f"--config-list: {config} has no draft steps, which --speculative-algorithm {asked} needs; expected "
            "batch-size,num-steps,topk,num-draft-tokens such as 1,3,1,4"
        )
    draft_given = options.speculative_draft_model_path or given_flags(options.server_args).get(
        "--speculative-draft-model-path"
    )
    if algorithm in _DRAFT_NEEDED and not draft_given:
        own_layers = "; a model with draft layers of its own: --speculative-algorithm NEXTN"
        raise UsageError(
            f"--speculative-draft-model-path is missing: {config} runs {algorithm}, which needs a draft model"
            + (own_layers if algorithm == "EAGLE" else "")
        )
    return algorithm


def server_command(config: SpecConfig, options: LaunchOptions, known: KnownFlags) -> list[str]:
    """The whole command line of one configuration's server; ``options`` are settled and have their port.

    ``--server-args`` come last, and a flag in them replaces the harness's own rather than coming twice.
    """
    taken = set(given_flags(options.server_args))
    words = [word.replace("{port}", str(options.port)) for word in options.launch_command]
    for name, *values in _own_flags(config, options, known):
        if canonical(name) not in taken:
            words += [name, *values]
    return [*words, *options.server_args]


def _own_flags(config: SpecConfig, options: LaunchOptions, known: KnownFlags) -> Iterator[tuple[str, ...]]:
    yield "--model-path", options.model_path
    yield "--host", options.host
    yield "--port", str(options.port)
    yield "--max-running-requests", str(config.batch_size)
    yield known.graph_limit, str(config.batch_size)
    yield "--random-seed", str(options.seed)
    yield ("--enable-metrics",)
    algorithm = algorithm_for(config, options)
    if algorithm is not None:
        yield "--speculative-algorithm", algorithm
        if options.speculative_draft_model_path is not None and algorithm != "NGRAM":
            yield "--speculative-draft-model-path", options.speculative_draft_model_path
        if config.num_steps:
            yield "--speculative-num-steps", str(config.num_steps)
            yield "--speculative-eagle-topk", str(config.topk)
        yield "--speculative-num-draft-tokens", str(config.num_draft_tokens)
    valued = (
        ("--tp-size", options.tp_size),
        ("--mem-fraction-static", options.mem_fraction_static),
        ("--attention-backend", options.attention_backend),
        ("--dtype", options.dtype),
        ("--quantization", options.quantization),
        ("--ep-size", options.ep_size),
        ("--api-key", options.api_key),
    )
    for name, value in valued:
        if value is not None:
            yield name, str(value)
    if options.trust_remote_code:
        yield ("--trust-remote-code",)
    if options.disable_radix_cache:
        yield ("--disable-radix-cache",)


def without_secrets(words: list[str]) -> list[str]:
    """A command line for logs and records: the value of every ``--...api-key`` flag is starred out."""
    shown: list[str] = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        secret = name.startswith("--") and name.endswith("api-key")
        shown.append("***" if hide else f"{name}=***" if secret and equals else word)
        hide = secret and not equals
    return shown


def _expanded(path: str) -> str:
    return os.path.expanduser(path) if path.startswith("~") else path


def _check_folder(flag: str, path: str) -> None:
    if path.startswith(("/", ".")) and not os.path.exists(path):
        raise UsageError(f"{flag}: {path} does not exist; expected a model's folder, or a model's id on the Hub")

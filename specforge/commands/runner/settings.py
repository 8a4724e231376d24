"""From the words of ``specforge benchmark`` to checked values: no request is sent before all of them are right."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specforge.client import Endpoint, parse_header
from specforge.client.sampling import Sampling
from specforge.datasets import LoadOptions, parse_dataset_paths, resolve
from specforge.errors import UsageError
from specforge.flags import at_least, read_sampling
from specforge.matrix import BenchmarkSpec
from specforge.measurement.goodput import Goodput
from specforge.measurement.sweep import Level


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A run, as the user asked for it.

    Attributes:
        endpoint: the server.
        model: the model that it is expected to serve; None for any.
        spec: the dataset, and its subsets.
        load: how the dataset is loaded.
        num_prompts: prompts to send; None for as many as there are.
        max_samples: different prompts at the most; None for no limit.
        levels: the levels of load, in rising order; one where nothing is swept.
        rounds, max_new_tokens, request_timeout, stream, max_failed, note, quiet: as on the command line.
        processes: client processes that share the load.
        goodput: limits that a good request keeps; None for none.
        sampling: what each request states.
        output_json: where the record goes; None for nowhere.
        flags: the command line, without secrets.
    """

    endpoint: Endpoint
    model: str | None
    spec: BenchmarkSpec
    load: LoadOptions
    num_prompts: int | None
    max_samples: int | None
    levels: tuple[Level, ...]
    rounds: int
    processes: int
    goodput: Goodput | None
    sampling: Sampling
    max_new_tokens: int
    request_timeout: float
    stream: bool
    max_failed: int
    output_json: Path | None
    note: str | None
    quiet: bool
    flags: tuple[str, ...]


def read_settings(given: argparse.Namespace, flags: Sequence[str]) -> Settings:
    """Reads and checks every option.

    Raises:
        UsageError: naming the flag, what was found and what was expected.
    """
    for flag in ("num_prompts", "max_samples", "rounds", "client_processes", "max_new_tokens"):
        at_least(flag, getattr(given, flag), 1)
    at_least("max_failed", given.max_failed, 0)
    if not 0 < given.request_timeout < math.inf:
        raise UsageError(f"--timeout-seconds: {given.request_timeout:g} is no finite number above 0")
    spec = _spec(given.dataset)
    return Settings(
        endpoint=Endpoint.parse(given.base_url, given.api_key, tuple(map(parse_header, given.header))),
        model=given.model,
        spec=replace(spec, num_prompts=None),
        load=LoadOptions(
            seed=given.seed,
            dataset_paths=parse_dataset_paths(_named_paths(spec.name, given.dataset_path)),
            revision=given.dataset_revision,
            samples=given.samples,
        ),
        num_prompts=given.num_prompts or spec.num_prompts,
        max_samples=given.max_samples,
        levels=_levels(given),
        rounds=given.rounds,
        processes=given.client_processes,
        goodput=Goodput.parse(given.goodput) if given.goodput else None,
        sampling=read_sampling(lambda name: getattr(given, name)),
        max_new_tokens=given.max_new_tokens,
        request_timeout=given.request_timeout,
        stream=given.stream,
        max_failed=given.max_failed,
        output_json=_writable(given.output_json),
        note=given.note,
        quiet=given.quiet,
        flags=tuple(flags),
    )


def _spec(text: str) -> BenchmarkSpec:
    try:
        spec = BenchmarkSpec.parse(text, flag="--dataset")
        resolve(spec, flag="--dataset")
    except UsageError as error:  # the matrix's words for the same thing
        raise UsageError(str(error).replace("--benchmark-list", "--dataset", 1)) from None
    return spec


def _named_paths(name: str, texts: Sequence[str]) -> list[str]:
    """A path alone is the named dataset's own; one that holds an equals sign needs its name."""
    return [text if "=" in text else f"{name}={text}" for text in texts]


def _levels(given: argparse.Namespace) -> tuple[Level, ...]:
    for value in given.concurrency or ():
        at_least("concurrency", value, 1)
    concurrencies = sorted(set(given.concurrency or ()))
    if given.request_rate is None:
        return tuple(map(Level, concurrencies or [1]))
    for rate in given.request_rate:
        if not (rate > 0 and math.isfinite(rate)):
            raise UsageError(f"--request-rate: {rate:g} is not a number of requests a second above 0")
    if len(concurrencies) > 1:
        raise UsageError("--concurrency: several values make a sweep, and so does --request-rate; sweep one of them")
    most = concurrencies[0] if concurrencies else None
    return tuple(Level(most, rate, given.arrivals == "poisson") for rate in sorted(set(given.request_rate)))


def _writable(text: str | None) -> Path | None:
    """The path, once it is known that a file can be made there."""
    if text is None:
        return None
    path = Path(text).expanduser()
    trial = path.with_name(path.name + ".new")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise UsageError(f"--output-json: {text!r} can't be written: {error.strerror}") from None
    return path

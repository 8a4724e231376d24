"""``--dry-run``: what a run would measure, start and ask. It starts no server, downloads nothing and writes nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from specforge.backends.command import algorithm_for, server_command, settled, without_secrets
from specforge.backends.flags import probe_flags
from specforge.backends.options import LaunchOptions
from specforge.datasets import LoadOptions, find, load, unscored_reason
from specforge.matrix import BenchmarkSpec, SpecConfig
from specforge.plugin.gate import measured_rounds
from specforge.plugin.options import option
from specforge.plugin.parallel.places import check_workers, describe_workers, devices_of, machines_of
from specforge.plugin.settings import Settings
from specforge.plugin.state import settings_of

Cells = Mapping[SpecConfig, Sequence[BenchmarkSpec]]
_WORKERS = pytest.StashKey["str"]()


def without_workers(config: pytest.Config) -> None:
    """Checks the workers that were asked for (``-n``), and has none started.

    Raises:
        UsageError: they can't all measure at once.
    """
    settings, machines = settings_of(config), machines_of(config.option.tx)
    check_workers(settings, machines, os.environ)
    config.stash[_WORKERS] = describe_workers(settings, machines, os.environ)
    config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None


def describe(config: pytest.Config, items: Iterable[pytest.Item]) -> list[str]:
    """What would happen to the tests that were collected and selected, in lines.

    Raises:
        UsageError, DatasetError: local rows can't be had.
    """
    settings = settings_of(config)
    cells = _cells_of(items)
    rounds = measured_rounds(settings.rounds, option(config, "fail_on"))
    plans = {spec: _plan(spec, settings) for spec in dict.fromkeys(spec for specs in cells.values() for spec in specs)}
    workers = [f"workers: {config.stash[_WORKERS]}"] if _WORKERS in config.stash else []
    return [
        "dry run: nothing is started, nothing is written",
        *_described(f"cells ({sum(map(len, cells.values()))}):", _cell_lines(cells, settings)),
        *_described("prompts:", (plan.line(settings) for plan in plans.values())),
        *workers,
        *_described(*_server_lines(cells, settings, shared=bool(workers))),
        _requests_line(cells, plans, rounds),
    ]


def _described(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield title
    yield from (f"  {line}" for line in lines)


def _cells_of(items: Iterable[pytest.Item]) -> Cells:
    cells: dict[SpecConfig, list[BenchmarkSpec]] = {}
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        config, spec = params.get("specforge_server"), params.get("benchmark_spec")
        if isinstance(config, SpecConfig) and isinstance(spec, BenchmarkSpec):
            cells.setdefault(config, []).append(spec)
    return cells


def _cell_lines(cells: Cells, settings: Settings) -> Iterator[str]:
    for config, specs in cells.items():
        algorithm = algorithm_for(config, settings.launch) if settings.launch is not None else None
        yield " ".join(filter(None, [str(config), algorithm])) + ": " + " ".join(map(str, specs))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is known of a benchmark before a run.

    Attributes:
        spec: the benchmark.
        prompts: how many; None where only the rows tell, which are still on the Hub.
        turns: of all prompts together; None likewise.
        turns_each: requests that one warm-up prompt takes.
        source: where they come from, for people.
        is_unread: whether the rows are still on the Hub, which may have fewer.
    """

    spec: BenchmarkSpec
    prompts: int | None
    turns: int | None
    turns_each: int
    source: str
    is_unread: bool = False

    def line(self, settings: Settings) -> str:
        definition = find(self.spec.name)
        number = "all" if self.prompts is None else f"up to {self.prompts}" if self.is_unread else str(self.prompts)
        turns = "" if self.turns_each == 1 else f" of {self.turns_each} turns"
        limit = settings.max_new_tokens.of(definition.name, definition.max_new_tokens)
        reason = unscored_reason(definition, settings.scoring)
        unscored = f"; no accuracy: {reason}" if reason else ""
        return f"{self.spec}: {number} prompts{turns}, at most {limit} tokens an answer, from {self.source}{unscored}"


def _plan(spec: BenchmarkSpec, settings: Settings) -> _Plan:
    definition = find(spec.name)
    if settings.load.samples or definition.name in settings.load.dataset_paths:
        drawn = load(spec, settings.load)
        turns = sum(1 + len(prompt.followups) for prompt in drawn.prompts)
        rows = "the sample rows" if drawn.source.kind == "sample" else drawn.source.location
        source = " ".join([rows, *(f"({note})" for note in drawn.notes)])
        return _Plan(spec, len(drawn.prompts), turns, 1 + len(drawn.warmup[0].followups), source)
    # The rows that ship with the project have as many turns as the Hub's.
    sample = load(BenchmarkSpec(definition.name, 1), LoadOptions(samples=True)).prompts[0]
    turns_each = 1 + len(sample.followups)
    hub = " and ".join(dict.fromkeys(part.dataset for part in definition.parts))
    total = spec.num_prompts * turns_each if spec.num_prompts is not None else None
    return _Plan(spec, spec.num_prompts, total, turns_each, f"the Hub's {hub}, not looked at", is_unread=True)


def _server_lines(cells: Cells, settings: Settings, *, shared: bool) -> tuple[str, list[str]]:
    """What would be started; where workers share the devices, those of each are not told here."""
    launch = settings.launch
    if launch is None:
        return "servers, attached to and left as they are:", [endpoint.base_url for endpoint in settings.endpoints]
    known = probe_flags(launch.launch_command, launch.environment)
    options: LaunchOptions = settled(launch)
    title = "servers, a fresh one for each configuration:"
    if options.port is None:
        options = replace(options, port=0)
        title = "servers, a fresh one for each configuration, on a free port in place of 0:"
    devices = {} if shared else devices_of(settings, None, os.environ).environment
    variables = [f"{name}={value}" for name, value in devices.items()]
    commands = (without_secrets(server_command(config, options, known)) for config in cells)
    return title, [shlex.join([*variables, *command]) for command in commands]


def _requests_line(cells: Cells, plans: Mapping[BenchmarkSpec, _Plan], rounds: int) -> str:
    """Warm-up is a batch for each cell, and one more for the first cell of each server."""
    specs = [spec for specs in cells.values() for spec in specs]
    measured = rounds * sum(plans[spec].turns or 0 for spec in specs)
    warmup = sum(
        (1 if place else 2) * config.batch_size * plans[spec].turns_each
        for config, specs in cells.items()
        for place, spec in enumerate(specs)
    )
    most = "up to " if any(plan.is_unread for plan in plans.values()) else ""
    unknown = [str(spec) for spec, plan in plans.items() if plan.turns is None]
    without = f", and those of {', '.join(unknown)}, whose number only the Hub tells" if unknown else ""
    several = f" in {rounds} rounds" if rounds > 1 else ""
    return f"requests: {most}{measured + warmup} = {measured} measured{several} + {warmup} of warm-up{without}"

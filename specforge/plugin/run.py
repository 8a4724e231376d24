"""The run behind a test session: settings, datasets, the server of the moment, and the file of records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from specforge.backends.attach import Attacher
from specforge.backends.base import Backend, Server
from specforge.backends.command import algorithm_for
from specforge.backends.identity import capacity_warning
from specforge.backends.launch import Launcher
from specforge.datasets import load, resolve
from specforge.datasets.model import Benchmark
from specforge.errors import DatasetError, RecordError, ServerError, SpecForgeError, UsageError
from specforge.load.blocking import sigterm_interrupts
from specforge.matrix import BenchmarkSpec, SpecConfig
from specforge.measurement.cell import PreparedPrompts
from specforge.measurement.environment import (
    attached_config,
    git_commit,
    gpus,
    machine,
    server_settings,
    without_secrets,
)
from specforge.measurement.target import Target
from specforge.plugin.entries import CellEntry, RunDocument
from specforge.plugin.gate import SPEED_ROUNDS, read_gate
from specforge.plugin.options import any_given, option
from specforge.plugin.scorers import Scorers
from specforge.plugin.settings import Settings, read_settings
from specforge.results.cell import Cell
from specforge.results.compare import compare_runs
from specforge.results.load import SavedRun, load_run
from specforge.results.record import CellRecord
from specforge.results.relate import add_lossless, add_speedup
from specforge.results.run_file import RunFiles

_SETTINGS = pytest.StashKey[Settings]()
_RUN = pytest.StashKey["Run"]()


def configure(config: pytest.Config) -> None:
    """Checks the options when any was given, wherever; without any there is nothing to be wrong."""
    if any_given(config) and not config.option.help:
        settings_of(config)


def settings_of(config: pytest.Config) -> Settings:
    """The session's settings, read once.

    Raises:
        pytest.UsageError: an option is wrong.
    """
    if _SETTINGS not in config.stash:
        try:
            config.stash[_SETTINGS] = read_settings(lambda name: option(config, name))
        except SpecForgeError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SETTINGS]


def run_of(config: pytest.Config) -> Run:
    """The session's run; there is one as soon as cells were collected."""
    return config.stash[_RUN]


def has_run(config: pytest.Config) -> bool:
    """Whether the session measures anything."""
    return _RUN in config.stash


def selected_specs(session: pytest.Session) -> list[BenchmarkSpec]:
    """The benchmarks of the items that will run, in order."""
    specs = (
        item.callspec.params.get("benchmark_spec")
        for item in session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    return list(dict.fromkeys(spec for spec in specs if isinstance(spec, BenchmarkSpec)))


def collected(session: pytest.Session) -> None:
    """Begins the run, unless nothing is to be measured."""
    config = session.config
    specs = selected_specs(session)
    if not specs or config.option.collectonly:
        return
    try:
        config.stash[_RUN] = Run(config, settings_of(config), specs)
    except (UsageError, DatasetError, RecordError) as error:
        raise pytest.UsageError(str(error)) from None


def header(config: pytest.Config) -> list[str] | None:
    """The lines under pytest's own header; None where the session has nothing to do with the harness."""
    if _SETTINGS not in config.stash:
        return None
    settings = config.stash[_SETTINGS]
    served = {
        "embedded": f"{embedded_label(samples=not settings.load.dataset_paths)} (no --model-path and no server given)",
        "attach": "attached to " + ", ".join(endpoint.base_url for endpoint in settings.endpoints),
        "launch": f"launching {settings.launch.model_path}" if settings.launch else "",
    }[settings.backend]
    matrix = f"{len(settings.configs)} configurations x {len(settings.benchmarks)} benchmarks"
    return [f"specforge: {matrix}, {served}"]


def embedded_label(*, samples: bool) -> str:
    """What keeps a table of the embedded engine from being taken for one of a real model."""
    return "embedded engine, sample data" if samples else "embedded engine"


def finished(session: pytest.Session) -> None:
    """Ends the run; a regression fails the session."""
    if has_run(session.config) and run_of(session.config).finish():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


class ServerOfRun:
    """The server of one configuration, or the reason why there is none."""

    def __init__(self, config: SpecConfig, server: Server | None, target: Target | None, failure: str | None) -> None:
        self.config = config
        self.server = server
        self.target = target
        self.failure = failure

    def stop(self) -> None:
        """Ends a launched server; leaves alone one that was attached to."""
        if self.target is not None:
            self.target.close()
        if self.server is not None:
            self.server.stop()


class Run:
    """One test session's measurements."""

    def __init__(self, config: pytest.Config, settings: Settings, specs: list[BenchmarkSpec]) -> None:
        self.settings = settings
        self.pytest_config = config
        self.started = datetime.now().astimezone()
        self.prepared: PreparedPrompts = {}
        self.entries: list[CellEntry] = []
        self.notes: list[str] = []
        self._loading = ThreadPoolExecutor(1, thread_name_prefix="specforge-datasets")
        self._benchmarks: dict[BenchmarkSpec, Future[Benchmark]] = {}
        self._gate = read_gate(
            lambda name: option(config, name), config.option.benchmark_compare, config.option.benchmark_storage
        )
        self.gate_lines: list[str] = []
        against = option(config, "lossless_against")
        self._lossless_against = load_run(against) if against else None
        self.rounds = settings.rounds or (SPEED_ROUNDS if self._gate.gates_speed else 1)
        self.scorers = Scorers(specs, settings.scoring)
        for spec in specs:
            self._begin_loading(spec)
        self.files = RunFiles(settings.output_dir, settings.name, self.started)
        self._backend: Backend = self._make_backend()
        self._document = RunDocument(config)
        self._environment = self._surroundings()
        # SIGTERM ends the session as Ctrl-C does, so that the cell in progress is kept.
        self._until_finished = contextlib.ExitStack()
        self._until_finished.enter_context(sigterm_interrupts())

    def _begin_loading(self, spec: BenchmarkSpec) -> None:
        """Reads local rows now, so that a wrong file costs no server's start; the Hub's while the first one starts."""
        options = self.settings.load
        if options.samples or resolve(spec).name in options.dataset_paths:
            future: Future[Benchmark] = Future()
            future.set_result(load(spec, options))
        else:
            future = self._loading.submit(load, spec, options)
        self._benchmarks[spec] = future

    def benchmark(self, spec: BenchmarkSpec) -> Benchmark:
        """A benchmark's prompts.

        Raises:
            DatasetError, UsageError: they can't be had.
        """
        return self._benchmarks[spec].result()

    def _make_backend(self) -> Backend:
        if self.settings.launch is None:
            return Attacher(self.settings.endpoints[0])
        return Launcher(replace(self.settings.launch, log_dir=self.files.logs))

    def start_server(self, config: SpecConfig) -> ServerOfRun:
        """Starts a configuration's server. One that won't start fails its own cells, not the run."""
        server: Server | None = None
        try:
            server = self._backend.start(config, self._show_start(config))
            target = Target(
                server.endpoint,
                # A process is looked at; an attached server would be asked, which the load's own watch does without
                # holding up the requests.
                server.check_alive if self.settings.launch else lambda: None,
                server.about.server_info,
                request_timeout=self.settings.request_timeout,
                stream=self.settings.stream,
                model_path=self.settings.launch.model_path if self.settings.launch else None,
            )
        except (ServerError, UsageError) as error:
            if server is not None:
                server.stop()
            return ServerOfRun(config, None, None, str(error))
        except BaseException:
            if server is not None:
                server.stop()
            raise
        target.notes.extend(server.about.notes)
        warning = capacity_warning(config, server.about.server_info)
        if warning is not None:
            target.notes.append(warning)
        if self.settings.backend == "attach" and len(self.settings.configs) > 1:
            target.notes.append(
                "the server is attached to, so a configuration gives the batch size only; what it runs is in the record"
            )
        return ServerOfRun(config, server, target, None)

    def _show_start(self, config: SpecConfig) -> Callable[[float, str], None] | None:
        reporter = self.pytest_config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return None

        def show(elapsed: float, line: str) -> None:
            reporter.rewrite(f"starting the server of {config}: {elapsed:.0f} s  {line[:80]}", erase=True)

        return show

    def record_config(self, config: SpecConfig, server: Server | None) -> dict[str, Any]:
        """The record's ``config``: what was launched, or what an attached server says that it runs."""
        if self.settings.launch is not None:
            algorithm = algorithm_for(config, self.settings.launch)
            return {
                "batch_size": config.batch_size,
                "num_steps": config.num_steps,
                "topk": config.topk,
                "num_draft_tokens": config.num_draft_tokens,
                "algorithm": algorithm,
            }
        return attached_config(server.about.server_info if server is not None else None, config.batch_size)

    def _surroundings(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "backend": settings.backend,
            "machine": machine(),
            "gpus": gpus(),
            "flags": without_secrets([str(argument) for argument in self.pytest_config.invocation_params.args]),
            "git_commit": git_commit(Path.cwd()),
            "note": settings.note,
            "name": settings.name,
            "started": self.started.isoformat(),
        }

    def environment(self, server: Server | None, drawn: Benchmark) -> dict[str, Any]:
        """What the record of a benchmark says of where it was made, with the server's part."""
        about = server.about if server is not None else None
        embedded = self.settings.backend == "embedded"
        return {
            **self._environment,
            "label": embedded_label(samples=drawn.source.kind == "sample") if embedded else None,
            "code_isolation": self.scorers.isolation(drawn.name),
            "server": server_settings(about.server_info) if about is not None else None,
            "base_url": server.base_url if server is not None else None,
            "launch_command": list(about.command) if about is not None else None,
            "server_started_in": about.started_in if about is not None else None,
        }

    def add(self, entry: CellEntry) -> None:
        """Keeps a cell, relates it to the baseline's, and rewrites the run's file."""
        self.entries.append(entry)
        records = [one.record for one in self.entries]
        add_speedup(records)
        # Rows are read for the new cell and its baseline only, not for all cells after each.
        self._add_lossless([*(record for record in records[:-1] if Cell(record).is_target_only), entry.record])
        self.files.write(self._document.of(self.entries))

    def _add_lossless(self, records: Sequence[CellRecord]) -> None:
        add_lossless(records, self.files.json_path.parent, self._lossless_against)

    def finish(self) -> bool:
        """Ends the run and holds it against the saved one; whether it is worse by more than was allowed."""
        self._loading.shutdown(wait=False, cancel_futures=True)
        self._until_finished.close()
        if not self.entries:
            return False
        records = [entry.record for entry in self.entries]
        # A baseline may have come after the cells that it is the baseline of.
        if any(record["metrics"]["lossless"] is None and not Cell(record).is_target_only for record in records):
            self._add_lossless(records)
        self.files.write(self._document.of(self.entries))
        if self._gate.base is None:
            return False
        this = SavedRun("this run", records, self.files.json_path.parent, self._document.machine_info)
        try:
            comparison = compare_runs(self._gate.base, [this], self._gate.tolerances)[0]
        except SpecForgeError as error:
            self.gate_lines = [f"gate: {error}"]
            return True
        assert comparison.gate is not None
        self.gate_lines = [*comparison.pairing.warnings, *comparison.gate.lines]
        return comparison.gate.failed(fail_on_undecided=self._gate.fail_on_undecided)

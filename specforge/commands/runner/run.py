"""Measures every level of ``specforge benchmark`` against the server, keeps it, and prints it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from specforge.backends.attach import Attacher
from specforge.backends.base import About
from specforge.backends.identity import capacity_warning
from specforge.commands.runner import console
from specforge.commands.runner.document import sweep_document
from specforge.commands.runner.files import ResultFiles
from specforge.commands.runner.settings import Settings
from specforge.datasets import load
from specforge.datasets.model import Benchmark
from specforge.load.blocking import sigterm_interrupts
from specforge.matrix import SpecConfig
from specforge.measurement.cell import INTERRUPTED, CellPlan, PreparedPrompts, measure_cell
from specforge.measurement.environment import (
    attached_config,
    git_commit,
    gpus,
    label_of,
    machine,
    server_settings,
    without_secrets,
)
from specforge.measurement.progress import Bar, Progress, Silent
from specforge.measurement.repeats import take
from specforge.measurement.sweep import Level
from specforge.measurement.target import Target
from specforge.results.record import CellRecord

UNSCORED = "specforge benchmark measures speed and acceptance; it scores nothing"
OK, FAILED = 0, 2


def measure(settings: Settings, out: TextIO, progress_to: TextIO) -> int:
    """Measures, writes and prints; the exit status.

    Raises:
        SpecForgeError: nothing could be measured.
        KeyboardInterrupt: Ctrl-C or SIGTERM; what was measured is kept and printed.
    """
    everything = load(settings.spec, settings.load)
    available = len(everything.prompts)
    count = settings.num_prompts or min(available, settings.max_samples or available)
    benchmark, repeats = take(everything, count, settings.max_samples or available, settings.sampling.seed)
    with sigterm_interrupts(), ResultFiles(settings.output_json) as files, _target(settings) as (target, about):
        levels = Levels(settings, benchmark, repeats, target, about, files, progress_to)
        try:
            levels.measure_all()
        finally:
            if levels.records:
                for line in levels.lines():
                    print(line, file=out, flush=True)
        if files.output_json is not None:
            print(f"record: {files.output_json}", file=out)
    failure = next((record["reason"] for record in levels.records if record["status"] != "ok"), None)
    if failure is not None:
        print(f"specforge benchmark: {failure}", file=progress_to)
    return OK if failure is None else FAILED


@contextlib.contextmanager
def _target(settings: Settings) -> Iterator[tuple[Target, About]]:
    largest = max(level.warmup_size for level in settings.levels)
    server = Attacher(settings.endpoint).start(SpecConfig(largest, 0, 0, 0))
    # The server is no child of ours: whether it lives is asked over HTTP while requests run, and not twice.
    target = Target(
        settings.endpoint,
        lambda: None,
        server.about.server_info,
        request_timeout=settings.request_timeout,
        stream=settings.stream,
        model_path=settings.model,
    )
    target.notes.extend(server.about.notes)
    target.notes.extend(_other_model(settings.model, target))
    try:
        yield target, server.about
    finally:
        target.close()


def _other_model(asked: str | None, target: Target) -> list[str]:
    """A warning where the server names another model than the user; a folder and a Hub id may be the same one."""
    info = target.server_info or {}
    names = {target.capabilities.model_path, target.capabilities.wire.model, info.get("served_model_name")} - {None}
    if asked is None or not names or any(_last(asked) == _last(str(name)) for name in names):
        return []
    return [f"--model {asked}: the server says that it serves {', '.join(sorted(map(str, names)))}"]


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


class Levels:
    """The levels of one run; each is kept as soon as it was measured."""

    def __init__(
        self,
        settings: Settings,
        benchmark: Benchmark,
        repeats: int,
        target: Target,
        about: About,
        files: ResultFiles,
        progress_to: TextIO,
    ) -> None:
        self.records: list[CellRecord] = []
        self._settings = settings
        self._benchmark = benchmark
        self._repeats = repeats
        self._target = target
        self._info = about.server_info
        self._files = files
        self._progress_to = progress_to
        self._prepared: PreparedPrompts = {}
        self._environment = {
            "backend": "attach",
            "label": label_of(embedded=False, samples=benchmark.source.kind == "sample"),
            "machine": machine(),
            "gpus": gpus(),
            "flags": without_secrets(settings.flags),
            "git_commit": git_commit(Path.cwd()),
            "note": settings.note,
            "name": None,
            "started": datetime.now().astimezone().isoformat(),
            "server": server_settings(about.server_info),
            "base_url": settings.endpoint.base_url,
            "launch_command": None,
            "server_started_in": None,
        }

    @property
    def _swept(self) -> bool:
        return len(self._settings.levels) > 1

    def measure_all(self) -> None:
        """Measures one level after the other; a server that is gone ends the sweep.

        Raises:
            KeyboardInterrupt: as :func:`measure`.
        """
        for level in self._settings.levels:
            record = self._measure(level)
            self.records.append(record)
            self._files.write(sweep_document(self.records) if self._swept else record)
            if record["reason"] == INTERRUPTED:
                raise KeyboardInterrupt
            if record["status"] != "ok" and not self._target.control.ready():
                return

    def lines(self) -> Iterator[str]:
        """What is printed of the levels measured."""
        return console.sweep(self.records) if self._swept else console.one_level(self.records[0])

    def _measure(self, level: Level) -> CellRecord:
        rows_path = self._files.new_rows(level if self._swept else None)
        plan = self._plan(level, rows_path)
        total = len(self._benchmark.prompts) * plan.rounds
        with _progress(str(level), total, self._progress_to, self._settings.quiet) as progress:
            record = measure_cell(self._target, plan, progress, self._prepared)
        self._files.keep_rows(record, rows_path)
        record["benchmark"]["repeats"] = self._repeats
        if level.concurrency is not None:
            warning = capacity_warning(SpecConfig(level.concurrency, 0, 0, 0), self._info)
            record["environment"]["warnings"] += [warning] if warning is not None else []
        _judge(record, self._settings.max_failed)
        return record

    def _plan(self, level: Level, rows_path: Path) -> CellPlan:
        settings = self._settings
        config = attached_config(self._info, level.concurrency if level.request_rate is None else None)
        return CellPlan(
            config={
                **config,
                "concurrency": level.concurrency,
                "request_rate": level.request_rate,
                "arrivals": level.arrivals,
            },
            spec=replace(settings.spec, num_prompts=len(self._benchmark.prompts)),
            benchmark=self._benchmark,
            concurrency=level.warmup_size,
            schedule=level.schedule(settings.sampling.seed) if level.request_rate is not None else None,
            sampling=settings.sampling,
            max_new_tokens=settings.max_new_tokens,
            largest_tree=config["num_draft_tokens"] or 0,
            rounds=settings.rounds,
            goodput=settings.goodput,
            warmup_batches=1,
            processes=settings.processes,
            unscored=UNSCORED,
            rows_path=rows_path,
            environment=self._environment,
        )


def _judge(record: CellRecord, max_failed: int) -> None:
    """A server that went away left a part of a result; more failed requests than allowed fail the level."""
    answered, failed = record["metrics"]["requests"], record["metrics"]["failed"]
    if record["status"] == "failed" and answered:
        record["status"] = "partial"
    elif record["status"] == "ok" and failed > max_failed:
        record["status"] = "failed"
        record["reason"] = (
            f"{failed} of {len(record['requests']['row_id'])} requests failed (--max-failed {max_failed}); "
            f"the first: {record['metrics']['first_error']}"
        )


@contextlib.contextmanager
def _progress(label: str, total: int, terminal: TextIO, quiet: bool) -> Iterator[Progress]:
    if quiet or not terminal.isatty():
        yield Silent()
        return
    bar = Bar(label, total, terminal)
    try:
        yield bar
    finally:
        bar.close()

"""What measures: datasets, scorers, the server of the moment, and what a record says of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specforge.backends.attach import Attacher
from specforge.backends.base import Backend, Server
from specforge.backends.command import algorithm_for
from specforge.backends.identity import capacity_warning
from specforge.backends.launch import Launcher
from specforge.datasets.model import Benchmark
from specforge.errors import OutputError, ServerError, UsageError
from specforge.matrix import SpecConfig
from specforge.measurement.cell import PreparedPrompts
from specforge.measurement.conditions import Conditions
from specforge.measurement.environment import (
    attached_config,
    git_commit,
    gpus,
    label_of,
    machine,
    server_settings,
    without_secrets,
)
from specforge.measurement.target import Target
from specforge.plugin.gate import measured_rounds
from specforge.plugin.loading import Benchmarks
from specforge.plugin.matrix_file import resolved_options
from specforge.plugin.options import option
from specforge.plugin.parallel.places import Place, devices_of, sharing_warnings
from specforge.plugin.resume import asked_of
from specforge.plugin.scorers import Scorers
from specforge.plugin.settings import Settings
from specforge.plugin.state import resumed_of
from specforge.plugin.terminal import Terminal
from specforge.results.run_file import RunFiles


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
    """What measures a session's cells: the whole session, or on a worker of pytest-xdist its share of it.

    Args:
        files: where rows and servers' logs go.
        place: what the controller told this worker; None without workers.
        started: when the run was, ISO 8601.

    Attributes:
        goes_on: whether an earlier run's rows may be there (``--resume``).
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        scorers: Scorers,
        benchmarks: Benchmarks,
        files: RunFiles,
        place: Place | None,
        started: str,
    ) -> None:
        self.settings = settings
        self.scorers = scorers
        self.benchmarks = benchmarks
        self.files = files
        self.place = place
        self.started = started
        self.prepared: PreparedPrompts = {}
        self.rounds = measured_rounds(settings.rounds, option(config, "fail_on"))
        self.goes_on = resumed_of(config) is not None or (place is not None and place.kept is not None)
        self._terminal = Terminal(config)
        self._devices = devices_of(settings, place, os.environ)
        self._backend: Backend = self._make_backend()
        self._environment = self._surroundings(config)

    def _make_backend(self) -> Backend:
        if self.settings.launch is None:
            endpoints = self.settings.endpoints
            return Attacher(endpoints[self.place.number % len(endpoints) if self.place else 0])
        options = replace(self.settings.launch, log_dir=self.files.logs, environment=self._devices.environment)
        return Launcher(options)

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
        except (ServerError, UsageError, OutputError) as error:
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
        if self.place is not None:
            target.notes.extend(sharing_warnings(self.settings, self.place, self._devices))
        return ServerOfRun(config, server, target, None)

    def _show_start(self, config: SpecConfig) -> Callable[[float, str], None] | None:
        if not self._terminal.is_seen:
            return None

        def show(elapsed: float, line: str) -> None:
            self._terminal.line(f"starting the server of {config}: {elapsed:.0f} s  {line[:80]}")

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

    def conditions(self, server: ServerOfRun) -> Conditions:
        """What decides a cell's numbers besides what is asked: the server, the machine, and what else runs there."""
        settings, info = self.settings, server.server.about.server_info if server.server is not None else None
        return {
            "cell": str(server.config),
            "config": self.record_config(server.config, server.server),
            "server": server_settings(info),
            "asked": asked_of(settings, self.rounds),
            "base_url": server.server.base_url if settings.launch is None and server.server is not None else None,
            "node": platform.node(),
            "machine": self._environment["machine"],
            "gpus": self._environment["gpus"],
            "devices": len(self._devices.ids),
            "servers_at_once": self.place.shares if self.place is not None else 1,
        }

    def _surroundings(self, config: pytest.Config) -> dict[str, Any]:
        settings = self.settings
        return {
            "backend": settings.backend,
            "machine": machine(),
            "gpus": gpus(),
            "flags": without_secrets([str(argument) for argument in config.invocation_params.args]),
            "git_commit": git_commit(Path.cwd()),
            "options": resolved_options(config, settings),
            "note": settings.note,
            "name": settings.name,
            "started": self.started,
            "worker": self.place.worker if self.place is not None else None,
            "devices": list(self._devices.ids) or None,
        }

    def environment(self, server: Server | None, drawn: Benchmark) -> dict[str, Any]:
        """What the record of a benchmark says of where it was made, with the server's part."""
        about = server.about if server is not None else None
        embedded = self.settings.backend == "embedded"
        return {
            **self._environment,
            "label": label_of(embedded=embedded, samples=drawn.source.kind == "sample"),
            "code_isolation": self.scorers.isolation(drawn.name),
            "server": server_settings(about.server_info) if about is not None else None,
            "base_url": server.base_url if server is not None else None,
            "launch_command": list(about.command) if about is not None else None,
            "server_started_in": about.started_in if about is not None else None,
        }

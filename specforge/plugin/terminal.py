"""What a run shows while it measures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from specforge.measurement.progress import Bar, Progress, Silent


class Terminal:
    """The terminal, where a person looks on: not a log, not with ``-q``, not on a worker.

    pytest captures what is written while a test runs, its own writer's text included, so capturing pauses for what is
    shown here.
    """

    def __init__(self, config: pytest.Config) -> None:
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        seen = reporter is not None and reporter.isatty and reporter.verbosity >= 0
        self._reporter = reporter if seen else None
        self._capture: Any = config.pluginmanager.getplugin("capturemanager")

    @property
    def is_seen(self) -> bool:
        """Whether anything is shown."""
        return self._reporter is not None

    @contextlib.contextmanager
    def bar(self, label: str, total: int) -> Iterator[Progress]:
        """A progress bar over ``total`` prompts; a silent one where nobody looks on."""
        if self._reporter is None:
            yield Silent()
            return
        with self._shown():
            bar = Bar(label, total, self._reporter._tw._file)
            try:
                yield bar
            finally:
                bar.close()

    def line(self, text: str) -> None:
        """Replaces the line that is shown."""
        if self._reporter is not None:
            with self._shown():
                self._reporter.rewrite(text, erase=True)

    def _shown(self) -> contextlib.AbstractContextManager[None]:
        if self._capture is None:
            return contextlib.nullcontext()
        paused: contextlib.AbstractContextManager[None] = self._capture.global_and_fixture_disabled()
        return paused

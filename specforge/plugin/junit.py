"""The metrics of a cell as properties of its test case in ``--junitxml``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specforge.plugin.state import ledger_of


def register_junit(config: pytest.Config) -> None:
    """Adds the hook to a session that writes the file: not to one without, nor to a worker."""
    if config.getoption("xmlpath", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(JUnit(config), "specforge-junit")


class JUnit:
    """Puts a cell's metrics into the last report of its test, from which pytest's own plugin takes properties."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds them before the file's writer sees the report."""
        ledger = ledger_of(self._config)
        if ledger is None or report.when != "teardown":
            return
        entry = next((entry for entry in ledger.entries if entry.fullname == report.nodeid), None)
        if entry is not None:
            report.user_properties.extend(_properties(entry.record["metrics"]))


def _properties(metrics: dict[str, object]) -> Iterator[tuple[str, object]]:
    from specforge.metrics.catalog import CATALOG

    for metric in CATALOG:
        value = metric.value(metrics)
        if value is not None:
            yield "_".join(metric.path), value

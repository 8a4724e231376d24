"""What ties the harness to pytest.

Every test session of every environment where the package is installed loads this module (entry point
``specforge.plugin``), so importing it is cheap, and nothing happens before a test asks for the fixtures.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from specforge.plugin.fixtures import benchmark_spec, measure_cell, specforge_server
from specforge.plugin.junit import register_junit
from specforge.plugin.options import add_options, any_given, option
from specforge.plugin.parallel import register
from specforge.plugin.parametrize import generate_cells
from specforge.plugin.replay import add_clocks
from specforge.plugin.state import SETTINGS, ledger_of

__all__ = ["benchmark_spec", "measure_cell", "specforge_server"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options, in one group of ``--help``."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Checks what was given, so that a mistake costs seconds and not a server's start; without any nothing is wrong."""
    if any_given(config) and not config.option.help and not hasattr(config, "workerinput"):
        from specforge.plugin.session import check

        check(config)
    register(config)
    register_junit(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turns ``--config-list`` and ``--benchmark-list`` into one test item a cell."""
    generate_cells(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the cells that ``--resume`` keeps, and gives each other one pytest-benchmark's clock."""
    if option(config, "resume"):
        from specforge.plugin.session import leave_out_kept

        leave_out_kept(config, items)
    add_clocks(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Loads the local datasets of the cells that were selected, before any server is started."""
    if SETTINGS in session.config.stash and not option(session.config, "dry_run"):
        from specforge.plugin.session import collected

        collected(session)


def pytest_report_header(config: pytest.Config) -> list[str] | None:
    """Says what will be measured, and whether it is sample data on the embedded engine."""
    if SETTINGS not in config.stash:
        return None
    from specforge.plugin.session import header

    return header(config)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str] | None:
    """Says the same where no option was given, so that only the collected tests tell that there is a matrix.

    In a dry run it says what a run would do.
    """
    if option(config, "dry_run"):
        from specforge.plugin.dry_run import describe
        from specforge.plugin.session import told_by_pytest

        with told_by_pytest():
            return describe(config, items)
    return None if any_given(config) else pytest_report_header(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Ends a dry run as ``--collect-only`` ends: nothing is run, and pytest's cache is not written."""
    if option(session.config, "dry_run"):
        session.config.option.collectonly = True


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Ends the run with its table."""
    ledger = ledger_of(config)
    if ledger is not None and ledger.entries:
        from specforge.plugin.summary import write_summary

        write_summary(terminalreporter, ledger)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Completes the run's records before pytest-benchmark, in a wrapper of its own, saves and compares them."""
    if SETTINGS in session.config.stash:
        from specforge.plugin.session import finished

        finished(session)
    yield

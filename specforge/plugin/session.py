"""A session's run: begun when its cells are known, ended with the session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from datetime import datetime

import pytest

from specforge.errors import DatasetError, RecordError, UsageError
from specforge.load.blocking import sigterm_interrupts
from specforge.matrix import BenchmarkSpec
from specforge.plugin.ledger import Ledger, References
from specforge.plugin.loading import Benchmarks
from specforge.plugin.parallel import has_workers
from specforge.plugin.parallel.places import THIS_MACHINE, check_workers, place_of
from specforge.plugin.run import Run
from specforge.plugin.scorers import Scorers
from specforge.plugin.settings import embedded_label
from specforge.plugin.state import LEDGER, RUN, SETTINGS, ledger_of, settings_of
from specforge.results.run_file import RunFiles, run_stem


@contextlib.contextmanager
def told_by_pytest() -> Iterator[None]:
    """What is wrong with the command line or a file ends the session with pytest's exit code for that, and one line."""
    try:
        yield
    except (UsageError, DatasetError, RecordError) as error:
        raise pytest.UsageError(str(error)) from None


def check(config: pytest.Config) -> None:
    """Reads the settings of a session, and refuses servers that nobody would measure.

    Raises:
        pytest.UsageError: an option is wrong.
    """
    settings = settings_of(config)
    if not has_workers(config):
        with told_by_pytest():
            check_workers(settings, [THIS_MACHINE], os.environ)


def selected_specs(session: pytest.Session) -> list[BenchmarkSpec]:
    """The benchmarks of the items that will run, in order."""
    specs = (
        item.callspec.params.get("benchmark_spec")
        for item in session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    return list(dict.fromkeys(spec for spec in specs if isinstance(spec, BenchmarkSpec)))


def collected(session: pytest.Session) -> None:
    """Begins the run, unless nothing is to be measured or it has begun."""
    config = session.config
    specs = selected_specs(session)
    if not specs or config.option.collectonly or RUN in config.stash:
        return
    with told_by_pytest():
        place = place_of(config)
        references = References.read(config) if place is None else None
        settings = settings_of(config)
        scorers, benchmarks = Scorers(specs, settings.scoring), Benchmarks(specs, settings.load)
        if place is None:
            now = datetime.now().astimezone()
            files, started = RunFiles.new(settings.output_dir, run_stem(settings.name, now)), now.isoformat()
        else:
            files, started = RunFiles(place.folder_under(settings.output_dir)), place.started
        config.stash[RUN] = Run(config, settings, scorers, benchmarks, files, place, started)
        if references is not None:
            config.stash[LEDGER] = Ledger(config, files, references)
    interrupt_on_sigterm(config)


def keep_for_workers(config: pytest.Config, stem: str, nodeids: Sequence[str]) -> Ledger:
    """Begins the controller's part of a run: it keeps what workers measure.

    Args:
        stem: what the run's files are called.
        nodeids: of the tests, in order.

    Raises:
        pytest.UsageError: a saved run can't be read, or the folder can't be made.
    """
    with told_by_pytest():
        references = References.read(config)
        files = RunFiles.new(settings_of(config).output_dir, stem)
        order = {nodeid: at for at, nodeid in enumerate(nodeids)}
        ledger = config.stash[LEDGER] = Ledger(config, files, references, order)
    interrupt_on_sigterm(config)
    return ledger


def interrupt_on_sigterm(config: pytest.Config) -> None:
    """SIGTERM ends the session as Ctrl-C does, so that the cell in progress is kept."""
    until_the_end = contextlib.ExitStack()
    until_the_end.enter_context(sigterm_interrupts())
    config.add_cleanup(until_the_end.close)


def header(config: pytest.Config) -> list[str]:
    """The lines under pytest's own header."""
    settings = config.stash[SETTINGS]
    served = {
        "embedded": f"{embedded_label(samples=not settings.load.dataset_paths)} (no --model-path and no server given)",
        "attach": "attached to " + ", ".join(endpoint.base_url for endpoint in settings.endpoints),
        "launch": f"launching {settings.launch.model_path}" if settings.launch else "",
    }[settings.backend]
    matrix = f"{len(settings.configs)} configurations x {len(settings.benchmarks)} benchmarks"
    return [f"specforge: {matrix}, {served}"]


def finished(session: pytest.Session) -> None:
    """Ends the run; a regression fails the session."""
    if RUN in session.config.stash:
        session.config.stash[RUN].benchmarks.close()
    ledger = ledger_of(session.config)
    if ledger is not None and ledger.finish():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

"""A session's run: begun when its cells are known, ended with the session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from specforge.errors import DatasetError, OutputError, RecordError, SpecForgeError, UsageError
from specforge.load.blocking import sigterm_interrupts
from specforge.matrix import BenchmarkSpec
from specforge.measurement.environment import label_of
from specforge.plugin.dry_run import without_workers
from specforge.plugin.entries import test_of
from specforge.plugin.gate import measured_rounds
from specforge.plugin.ledger import Ledger, References
from specforge.plugin.loading import Benchmarks
from specforge.plugin.matrix_file import apply_matrix
from specforge.plugin.options import option
from specforge.plugin.parallel import has_workers
from specforge.plugin.parallel.places import THIS_MACHINE, check_workers, place_of
from specforge.plugin.report import check_report, write_report
from specforge.plugin.resume import read_resumed
from specforge.plugin.run import Run
from specforge.plugin.scorers import Scorers
from specforge.plugin.state import LEDGER, RESUMED, RUN, SETTINGS, ledger_of, resumed_of, settings_of, take_matrix
from specforge.results.run_file import RunFiles, run_stem


@contextlib.contextmanager
def told_by_pytest() -> Iterator[None]:
    """What is wrong with the command line or a file ends the session with pytest's exit code for that, and one line."""
    try:
        yield
    except (UsageError, DatasetError, RecordError, OutputError) as error:
        raise pytest.UsageError(str(error)) from None


def check(config: pytest.Config) -> None:
    """Reads a session's file, its settings and the run that it resumes, and refuses what would fail at its end.

    Raises:
        pytest.UsageError: an option is wrong.
    """
    with told_by_pytest():
        if option(config, "matrix") is not None:
            apply_matrix(config)
        if option(config, "resume") is not None:
            config.stash[RESUMED] = read_resumed(option(config, "resume"))
            take_matrix(config, config.stash[RESUMED].matrix)
        settings, resumed = settings_of(config), resumed_of(config)
        if resumed is not None:
            resumed.check(settings, measured_rounds(settings.rounds, option(config, "fail_on")))
        if option(config, "report") is not None:
            check_report(Path(option(config, "report")))
        if not has_workers(config):
            check_workers(settings, [THIS_MACHINE], os.environ)
        elif option(config, "dry_run"):
            without_workers(config)


def leave_out_kept(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the cells that a resumed run keeps."""
    place, resumed = place_of(config), resumed_of(config)
    kept = set(place.kept or ()) if place is not None else set(resumed.kept) if resumed is not None else set()
    cells = [
        item for item in items if test_of(item.nodeid) in kept and "measure_cell" in getattr(item, "fixturenames", ())
    ]
    if cells:
        items[:] = [item for item in items if item not in cells]
        config.hook.pytest_deselected(items=cells)


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
            now, resumed = datetime.now().astimezone(), resumed_of(config)
            if resumed is not None:
                resumed.check_prompts(settings)
                files = resumed.files
            else:
                files = RunFiles.new(settings.output_dir, run_stem(settings.name, now))
            started = now.isoformat()
        else:
            files, started = RunFiles(place.folder_under(settings.output_dir)), place.started
        config.stash[RUN] = Run(config, settings, scorers, benchmarks, files, place, started)
        if references is not None:
            config.stash[LEDGER] = Ledger(config, files, references, resumed_of(config))
    interrupt_on_sigterm(config)


def keep_for_workers(config: pytest.Config, folder: Path) -> None:
    """Begins the controller's part of a run: it keeps what workers measure.

    Args:
        folder: the run's, unless another run has it.

    Raises:
        pytest.UsageError: a saved run can't be read, its prompts are others now, or the folder can't be made.
    """
    with told_by_pytest():
        references, resumed = References.read(config), resumed_of(config)
        if resumed is not None:
            resumed.check_prompts(settings_of(config))
        files = resumed.files if resumed is not None else RunFiles.new(folder.parent, folder.name)
        config.stash[LEDGER] = Ledger(config, files, references, resumed)
    interrupt_on_sigterm(config)


def interrupt_on_sigterm(config: pytest.Config) -> None:
    """SIGTERM ends the session as Ctrl-C does, so that the cell in progress is kept."""
    until_the_end = contextlib.ExitStack()
    until_the_end.enter_context(sigterm_interrupts())
    config.add_cleanup(until_the_end.close)


def header(config: pytest.Config) -> list[str]:
    """The lines under pytest's own header."""
    settings = config.stash[SETTINGS]
    served = {
        "embedded": "no --model-path and no server given",
        "attach": "attached to " + ", ".join(endpoint.base_url for endpoint in settings.endpoints),
        "launch": f"launching {settings.launch.model_path}" if settings.launch else "",
    }[settings.backend]
    samples = settings.load.samples and not settings.load.dataset_paths
    label = label_of(embedded=settings.backend == "embedded", samples=samples)
    matrix = f"{_count(settings.configs, 'configuration')} x {_count(settings.benchmarks, 'benchmark')}"
    resumed = resumed_of(config)
    goes_on = [resumed.header(settings)] if resumed is not None else []
    return [f"specforge: {matrix}, {f'{label} ({served})' if label else served}", *goes_on]


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def finished(session: pytest.Session) -> None:
    """Ends the run; a regression, or a page that can't be written, fails the session."""
    config = session.config
    if RUN in config.stash:
        config.stash[RUN].benchmarks.close()
    _keep_complete(session)
    ledger = ledger_of(config)
    if ledger is None:
        return
    if ledger.finish():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    controller = config.pluginmanager.getplugin("specforge-controller")
    if ledger.resumed is not None and (controller.enters_cells if controller else not config.option.benchmark_disable):
        ledger.enter()
    if option(config, "report") and ledger.entries:
        try:
            ledger.report_line = write_report(ledger, Path(option(config, "report")))
        except SpecForgeError as error:
            ledger.report_line = str(error)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _keep_complete(session: pytest.Session) -> None:
    """A resumed run that lacks nothing has no test to run, which is no failure."""
    config, resumed = session.config, resumed_of(session.config)
    nothing_ran = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not config.option.collectonly
    if resumed is None or not nothing_ran or not resumed.is_complete(settings_of(config)):
        return
    try:
        resumed.check_prompts(settings_of(config))
        config.stash[LEDGER] = Ledger(config, resumed.files, References.read(config), resumed)
        session.exitstatus = pytest.ExitCode.OK
    except SpecForgeError as error:
        raise pytest.exit.Exception(str(error), pytest.ExitCode.USAGE_ERROR) from None

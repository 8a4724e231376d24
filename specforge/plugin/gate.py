"""The regression gate inside a run: ``--benchmark-compare[=RUN] --fail-on METRIC:TOLERANCE ...``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from specforge.errors import RecordError, UsageError
from specforge.results.load import STORAGE, SavedRun, load_run
from specforge.results.tolerance import Tolerance, parse_tolerances

SPEED_ROUNDS = 5
"""Measured rounds where a speed metric is gated and ``--rounds`` is not given: fewer can't tell noise from a loss."""


@dataclass(frozen=True, slots=True)
class GatePlan:
    """What the run is to be held against.

    Attributes:
        base: the saved run; None where nothing is compared.
        tolerances: what fails the session; empty for nothing.
        fail_on_undecided: whether too few rounds to tell fail it too.
    """

    base: SavedRun | None
    tolerances: tuple[Tolerance, ...]
    fail_on_undecided: bool


def default_rounds(fail_on: Sequence[str] | None) -> int:
    """Measured rounds where ``--rounds`` is not given, by the values of ``--fail-on``: more where speed is gated.

    Raises:
        UsageError: a tolerance is wrong.
    """
    tolerances = parse_tolerances(fail_on or ())
    return SPEED_ROUNDS if any(not tolerance.metric.design.by_prompt for tolerance in tolerances) else 1


def measured_rounds(rounds: int | None, fail_on: Sequence[str] | None) -> int:
    """The rounds that a run measures of each cell, by the values of ``--rounds`` and ``--fail-on``.

    Raises:
        UsageError: a tolerance is wrong.
    """
    return rounds or default_rounds(fail_on)


def read_gate(get: Callable[[str], Any], compare: str | bool | None, storage: str) -> GatePlan:
    """Reads the gate's options; the saved run is read before this run is saved, so that ``last`` isn't this one.

    Args:
        get: gives an option of the harness by its name.
        compare: pytest-benchmark's ``--benchmark-compare``: a run, True for the newest stored one, None for none.
        storage: pytest-benchmark's ``--benchmark-storage``.

    Raises:
        UsageError: a tolerance is wrong, or there is nothing to compare with.
        RecordError: the saved run can't be read.
    """
    tolerances = tuple(parse_tolerances(get("fail_on") or ()))
    if tolerances and not compare:
        raise UsageError("--fail-on: there is nothing to compare with; add --benchmark-compare[=RUN]")
    base = None
    if tolerances:
        folder = _folder_of(storage)
        base = load_run(str(_newest(folder)) if compare is True else str(compare), folder)
    return GatePlan(base, tolerances, bool(get("fail_on_undecided")))


def _folder_of(storage: str) -> Path:
    parts = urlsplit(storage)
    if parts.scheme not in ("", "file"):
        raise UsageError(f"--benchmark-storage: {storage!r} is no folder; the gate reads saved runs from files")
    return Path((parts.netloc + parts.path) or STORAGE)


def _newest(folder: Path) -> Path:
    stored: Sequence[Path] = sorted(folder.glob("*/*.json"), key=lambda path: path.name)
    if not stored:
        raise RecordError(
            f"--benchmark-compare: {str(folder)!r} holds no saved run; "
            "save one with --benchmark-autosave, or name a file"
        )
    return stored[-1]

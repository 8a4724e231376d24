"""``--report FILE``: the run's page, written when the run ends."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from specforge.errors import UsageError
from specforge.results.output import check_writable, write_text

if TYPE_CHECKING:
    from specforge.plugin.ledger import Ledger

_FLAG = "--report"


def check_report(path: Path) -> None:
    """Refuses a page that could not be written at the end.

    Raises:
        UsageError: the path, or the library that draws the charts, is missing.
    """
    if find_spec("matplotlib") is None:
        raise UsageError(f"{_FLAG}: its charts need matplotlib: pip install 'specforge[report]'")
    check_writable(path, _FLAG)


def write_report(ledger: Ledger, path: Path) -> str:
    """Writes the page; what the summary says of it.

    Raises:
        SpecForgeError: it can't be written.
    """
    from specforge.results.report import render_report

    write_text(path, render_report([ledger.saved(ledger.files.json_path.stem)]), _FLAG)
    return f"report: {path}"

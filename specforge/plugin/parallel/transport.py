"""A cell in a test's report, on its way from a worker to the controller."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from specforge.plugin.entries import CellEntry
from specforge.results.run_file import RunFiles, dumps

_PROPERTY = "specforge"


def put(report: pytest.TestReport, entry: CellEntry, rows: Path | None) -> None:
    """Puts a cell into a report.

    Args:
        rows: the file of its rows, to be sent along where the controller doesn't see it; else None.
    """
    content = dumps({name: getattr(entry, name) for name in CellEntry.__slots__}).decode()
    packed = zlib.compress(rows.read_bytes(), level=1) if rows is not None else None
    report.user_properties.append((_PROPERTY, (content, packed)))


def take(report: pytest.TestReport, files: RunFiles) -> CellEntry | None:
    """Takes a cell out of a report, before other plugins see its properties, and writes rows that came along.

    None for a report that brings none.
    """
    sent: list[Any] = [value for name, value in report.user_properties if name == _PROPERTY]
    if not sent:
        return None
    report.user_properties = [pair for pair in report.user_properties if pair[0] != _PROPERTY]
    content, packed = sent[0]
    fields: dict[str, Any] = orjson.loads(content)
    entry = CellEntry(**{**fields, "durations": tuple(fields["durations"])})
    if packed is not None and entry.record["rows"] is not None:
        path = files.rows / Path(entry.record["rows"]["path"]).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(packed))
    return entry

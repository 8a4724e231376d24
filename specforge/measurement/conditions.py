"""What a cell's rows were measured under, beside them: rounds of another server or machine are none of this cell's.

A row says what was asked and answered, not by whom. So a cell that begins leaves a file beside its rows which says
that; a resumed run counts their rounds only where it would measure under the same conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from specforge.errors import OutputError, RecordError
from specforge.results.load import read_json
from specforge.results.run_file import dumps, write_json_atomically

Conditions = Mapping[str, Any]


def conditions_path(rows: Path) -> Path:
    """Where the conditions of a rows file are kept."""
    return rows.with_suffix(".conditions.json")


def first_valid_attempt(rows: Path, now: Conditions, following: int) -> int:
    """From which attempt on a file's rows were measured under these conditions: ``following`` where none were."""
    try:
        kept = read_json(conditions_path(rows))
    except RecordError:
        return following
    same = isinstance(kept, dict) and kept.get("conditions") == orjson.loads(dumps(now))
    first = kept.get("first_attempt") if same else None
    return first if isinstance(first, int) else following


def keep_conditions(rows: Path, now: Conditions, first_attempt: int) -> None:
    """Writes down what the rows from an attempt on are measured under, before there are any.

    Raises:
        OutputError: it can't be written.
    """
    try:
        rows.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError.of(rows.parent, error) from None
    write_json_atomically(conditions_path(rows), {"first_attempt": first_attempt, "conditions": now})

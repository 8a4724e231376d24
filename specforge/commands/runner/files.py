"""What ``specforge benchmark`` leaves on disk: the record, and the answers beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from specforge.measurement.sweep import Level
from specforge.results.record import CellRecord
from specforge.results.run_file import write_json_atomically


class ResultFiles:
    """The record at ``--output-json`` and one rows file a level beside it; nothing stays without that option.

    Rows land in a file that ends in ``.part`` and get their name when their level is over, so that an earlier result
    of the same name stays whole until then, and a crash loses no row that landed.
    """

    def __init__(self, output_json: Path | None) -> None:
        self.output_json = output_json
        self._scratch = tempfile.TemporaryDirectory(prefix="specforge-") if output_json is None else None

    def __enter__(self) -> ResultFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def new_rows(self, level: Level | None) -> Path:
        """An empty place for the rows of a level; None where nothing is swept."""
        name = f"{level}.rows.jsonl.part" if level is not None else "rows.jsonl.part"
        if self.output_json is None:
            assert self._scratch is not None
            return Path(self._scratch.name) / name
        path = self.output_json.with_name(f"{self.output_json.name.removesuffix('.json')}.{name}")
        path.unlink(missing_ok=True)
        return path

    def keep_rows(self, record: CellRecord, written: Path) -> None:
        """Gives a level's rows their name, and the record that name, relative to its own file."""
        if self.output_json is None or record["rows"] is None:
            record["rows"] = None
            return
        kept = written.with_suffix("")
        written.replace(kept)
        record["rows"]["path"] = kept.name

    def write(self, document: Mapping[str, Any]) -> None:
        """Replaces the record's file, atomically."""
        if self.output_json is not None:
            write_json_atomically(self.output_json, document)

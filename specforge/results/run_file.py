"""A run's files: one JSON in pytest-benchmark's format, rewritten after every cell, and a folder with rows and logs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from specforge.errors import OutputError, UsageError

_UNSAFE = re.compile(r"[^\w.,=+-]+")
_LONGEST_NAME = 150  # bytes; file systems take 255 with all that is put around it


def safe_name(text: str) -> str:
    """A text as part of a file's name: short enough for any file system, and another one for another long text."""
    safe = _UNSAFE.sub("_", text)
    if len(safe.encode()) <= _LONGEST_NAME:
        return safe
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{safe.encode()[: _LONGEST_NAME - 9].decode(errors='ignore')}-{digest}"


def run_stem(name: str | None, started: datetime) -> str:
    """What a run's files are called: its name, where it has one, and when it was started."""
    return "-".join(filter(None, [safe_name(name) if name else None, started.strftime("%Y%m%d-%H%M%S")]))


class RunFiles:
    """Where a run leaves what it measured: a folder with rows and logs, and a JSON of the same name beside it.

    Args:
        folder: made by :meth:`new`, or when something is written there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.json_path = folder.with_name(folder.name + ".json")
        self.rows = folder / "rows"
        self.logs = folder / "logs"

    @classmethod
    def new(cls, output_dir: Path, stem: str) -> RunFiles:
        """The files of a new run, in a folder that no other run has.

        Raises:
            UsageError: the folder can't be made.
        """
        return cls(_new_folder(output_dir, stem))

    def rows_path(self, config: str, benchmark: str) -> Path:
        """The rows file of a cell."""
        return self.rows / f"{safe_name(config)}-{safe_name(benchmark)}.jsonl"

    def relative(self, path: str | Path) -> str:
        """A path as the run's JSON names it: from its own folder, so that both can be moved together."""
        return os.path.relpath(path, self.json_path.parent)

    def absolute(self, path: str) -> Path:
        """What :meth:`relative` was given."""
        return self.json_path.parent / path

    def write(self, document: Mapping[str, Any]) -> None:
        """Replaces the run's JSON, atomically: a reader, or a crash, sees the old one or the new one."""
        write_json_atomically(self.json_path, document)


def dumps(document: Mapping[str, Any], *, indent: bool = False) -> bytes:
    """JSON as a record's file has it; what JSON doesn't know is its text."""
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(document, default=str, option=options | orjson.OPT_INDENT_2 if indent else options)


def write_json_atomically(path: Path, document: Mapping[str, Any]) -> None:
    """Writes JSON beside ``path`` and moves it there once it is on disk.

    Raises:
        OutputError: it can't be written; what was there before is still there.
    """
    replacement = path.with_name(path.name + ".new")
    try:
        try:
            with replacement.open("wb") as file:
                file.write(dumps(document, indent=True))
                file.flush()
                os.fsync(file.fileno())
            replacement.replace(path)
        except BaseException:
            replacement.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError.of(path, error) from None


def _new_folder(output_dir: Path, stem: str) -> Path:
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 1000):
            folder = output_dir / (stem if attempt == 1 else f"{stem}-{attempt}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue  # another run began within the same second
            return folder
    except OSError as error:
        raise UsageError(f"--output-dir: {str(output_dir)!r} can't be written: {error.strerror}") from None
    raise UsageError(f"--output-dir: {str(output_dir)!r} has a thousand runs called {stem}")

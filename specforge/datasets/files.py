"""Rows from local files and folders: JSONL, JSON, CSV and Parquet, in the Hub's columns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from specforge.datasets.definition import Row, subset_key
from specforge.errors import DatasetError

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of one file.

    Attributes:
        path: where it is.
        rows: its rows in order.
        label: the subset that its name gives; empty where it gives none.
    """

    path: Path
    rows: list[Row]
    label: str


@dataclass(frozen=True, slots=True)
class Files:
    """What was read from a path: the files' rows, and one hash that says exactly which bytes they came from.

    ``sha256`` is the file's; of several files, that of the text that ``sha256sum`` prints for them from within the
    folder, in the order of their paths.
    """

    parts: tuple[FileRows, ...]
    sha256: str


def read_path(path: Path, split: str, labels: Sequence[str] = (), flag: str = "--dataset-path") -> Files:
    """Reads a file, or those files of a folder that hold ``split``.

    Raises:
        DatasetError: nothing there can be read as rows, or a folder's files don't tell which of them is the split.
    """
    chosen = [path] if path.is_file() else _files_of_split(path, split, flag)
    parts, hashes = [], []
    for file in chosen:
        content = file.read_bytes()
        hashes.append((hashlib.sha256(content).hexdigest(), file))
        name = file.stem if path.is_file() else str(file.relative_to(path).with_suffix(""))
        parts.append(FileRows(file, parse_rows(content, file, flag), _label_in(name, labels)))
    if len(hashes) == 1:
        return Files(tuple(parts), hashes[0][0])
    listing = "".join(f"{digest}  {file.relative_to(path).as_posix()}\n" for digest, file in hashes)
    return Files(tuple(parts), hashlib.sha256(listing.encode()).hexdigest())


def parse_rows(content: bytes, path: Path, flag: str) -> list[Row]:
    """The rows in a file's bytes, by the file's suffix.

    Raises:
        DatasetError: the suffix is unknown, a line is malformed, or there are no rows.
    """
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        rows = _jsonl(content, path, flag)
    elif suffix == ".json":
        rows = _json(content, path, flag)
    elif suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    elif suffix == ".parquet":
        rows = _parquet(content, path, flag)
    else:
        raise DatasetError(f"{flag}: {path}: unknown suffix {suffix!r}; expected one of {', '.join(SUFFIXES)}")
    if not rows:
        raise DatasetError(f"{flag}: {path}: no rows")
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DatasetError(f"{flag}: {path}: row {place} is {type(row).__name__}; expected an object")
    return rows


def has_split(path: Path, split: str) -> bool:
    """Whether a folder has files that name this split."""
    return path.is_dir() and any(_names_split(file.relative_to(path), split) for file in _data_files(path))


def _jsonl(content: bytes, path: Path, flag: str) -> list[Any]:
    rows = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                rows.append(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise DatasetError(f"{flag}: {path}, line {number}: not JSON: {error}") from None
    return rows


def _json(content: bytes, path: Path, flag: str) -> list[Any]:
    try:
        rows = json.loads(content)
    except ValueError as error:
        raise DatasetError(f"{flag}: {path}: not JSON: {error}") from None
    if not isinstance(rows, list):
        raise DatasetError(f"{flag}: {path}: found {type(rows).__name__}; expected a list of objects")
    return rows


def _parquet(content: bytes, path: Path, flag: str) -> list[Any]:
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        rows: list[Any] = parquet.read_table(io.BytesIO(content)).to_pylist()
    except pyarrow.ArrowException as error:
        raise DatasetError(f"{flag}: {path}: not Parquet: {str(error).splitlines()[0]}") from None
    return rows


def _data_files(folder: Path) -> list[Path]:
    found = (file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    visible = (file for file in found if not any(part.startswith(".") for part in file.relative_to(folder).parts))
    return sorted(visible, key=lambda file: file.relative_to(folder).as_posix())


def _files_of_split(folder: Path, split: str, flag: str) -> list[Path]:
    files = _data_files(folder)
    if not files:
        raise DatasetError(f"{flag}: {folder}: no {', '.join(SUFFIXES)} file in this folder")
    if len(files) == 1:
        return files
    named = [file for file in files if _names_split(file.relative_to(folder), split)]
    if not named:
        listed = ", ".join(file.relative_to(folder).as_posix() for file in files[:8])
        raise DatasetError(
            f"{flag}: {folder}: none of its {len(files)} files names the split {split!r} ({listed}); "
            "name one file instead"
        )
    return named


def _names_split(relative: Path, split: str) -> bool:
    """Whether a word of the file's name, or a folder above it, is the split; shards and ``x_val.csv`` count."""
    words = [*relative.parts[:-1], *re.split(r"[-_.]", relative.stem)]
    return split in words


def _label_in(name: str, labels: Iterable[str]) -> str:
    """The longest label that stands in a file's path as whole words: ``tax_accountant`` before ``accountant``."""
    padded = f"_{subset_key(name)}_"
    found = [label for label in labels if f"_{subset_key(label)}_" in padded]
    return max(found, key=len, default="")

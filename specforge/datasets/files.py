"""Rows from local files and folders: JSONL, JSON, CSV and Parquet, in the Hub's columns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from specforge.datasets.definition import HubPart, Row, subset_key
from specforge.errors import DatasetError

FLAG = "--dataset-path"
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


def read_path(path: Path, parts: Sequence[HubPart], wanted: frozenset[str] | None = None) -> Files:
    """Reads a file, or those files of a folder that hold the parts' split, such as a snapshot of the Hub's repository.

    Args:
        path: a file, read whatever its name, or a folder.
        parts: what the dataset consists of on the Hub: splits, configurations, file names and labels.
        wanted: keys of the labels to read of a folder that has them; None for all.

    Raises:
        DatasetError: nothing there can be read as rows, or a folder's files don't tell which of them is the split.
    """
    if path.is_file():
        content = path.read_bytes()
        label = _label(path.name, path.stem, parts)
        return Files((FileRows(path, parse_rows(content, path), label),), hashlib.sha256(content).hexdigest())
    read, listing = [], []
    for file, label in _files_of_split(path, parts, wanted):
        content = file.read_bytes()
        read.append(FileRows(file, parse_rows(content, file), label))
        listing.append((hashlib.sha256(content).hexdigest(), file.relative_to(path).as_posix()))
    if len(listing) == 1:
        return Files(tuple(read), listing[0][0])
    text = "".join(f"{digest}  {name}\n" for digest, name in listing)
    return Files(tuple(read), hashlib.sha256(text.encode()).hexdigest())


def parse_rows(content: bytes, path: Path) -> list[Row]:
    """The rows in a file's bytes, by the file's suffix.

    Raises:
        DatasetError: the suffix is unknown, a line is malformed, or there are no rows.
    """
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        rows = _jsonl(content, path)
    elif suffix == ".json":
        rows = _json(content, path)
    elif suffix == ".csv":
        rows = _csv(content, path)
    elif suffix == ".parquet":
        rows = _parquet(content, path)
    else:
        raise DatasetError(f"{FLAG}: {path}: unknown suffix {suffix!r}; expected one of {', '.join(SUFFIXES)}")
    if not rows:
        raise DatasetError(f"{FLAG}: {path}: no rows")
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DatasetError(f"{FLAG}: {path}: row {place} is {type(row).__name__}; expected an object")
    return rows


def has_split(path: Path, split: str) -> bool:
    """Whether a folder has files that name this split."""
    return path.is_dir() and any(_names(file.relative_to(path), split) for file in _data_files(path))


def _jsonl(content: bytes, path: Path) -> list[Any]:
    rows = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                rows.append(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise DatasetError(f"{FLAG}: {path}, line {number}: not JSON: {error}") from None
    return rows


def _json(content: bytes, path: Path) -> list[Any]:
    try:
        rows = json.loads(content)
    except ValueError as error:
        raise DatasetError(f"{FLAG}: {path}: not JSON: {error}") from None
    if not isinstance(rows, list):
        raise DatasetError(f"{FLAG}: {path}: found {type(rows).__name__}; expected a list of objects")
    return rows


def _csv(content: bytes, path: Path) -> list[Any]:
    limit = csv.field_size_limit(max(len(content), 1 << 17))  # a filing's text is longer than the default allows
    try:
        return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DatasetError(f"{FLAG}: {path}: not CSV in UTF-8: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _parquet(content: bytes, path: Path) -> list[Any]:
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        rows: list[Any] = parquet.read_table(io.BytesIO(content)).to_pylist()
    except pyarrow.ArrowException as error:
        raise DatasetError(f"{FLAG}: {path}: not Parquet: {str(error).splitlines()[0]}") from None
    return rows


def _data_files(folder: Path) -> list[Path]:
    found = (file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    visible = (file for file in found if not any(part.startswith(".") for part in file.relative_to(folder).parts))
    return sorted(visible, key=lambda file: file.relative_to(folder).as_posix())


def _files_of_split(folder: Path, parts: Sequence[HubPart], wanted: frozenset[str] | None) -> list[tuple[Path, str]]:
    """The files to read, each with its label."""
    files = _data_files(folder)
    if not files:
        raise DatasetError(f"{FLAG}: {folder}: no {', '.join(SUFFIXES)} file in this folder")
    relative = [file.relative_to(folder) for file in files]
    labels = [_label(name.as_posix(), name.with_suffix("").as_posix(), parts) for name in relative]
    published = {file for part in parts for file in part.files}
    split, config = parts[0].split, parts[0].config if len(parts) == 1 else None
    places = [place for place, name in enumerate(relative) if name.as_posix() in published]
    if not places:
        places = [place for place, name in enumerate(relative) if _names(name, split)]
    if not places:
        places = [place for place, label in enumerate(labels) if label]
    if not places and len(files) == 1:
        places = [0]
    if not places:
        listed = ", ".join(name.as_posix() for name in relative[:8])
        raise DatasetError(
            f"{FLAG}: {folder}: none of its {len(files)} files names the split {split!r} ({listed}); "
            "name one file instead"
        )
    # A snapshot of the Hub's repository has a folder for each configuration, some with the same rows.
    places = [place for place in places if config in relative[place].parts] or places
    if wanted is not None:
        places = [place for place in places if subset_key(labels[place]) in wanted] or places
    return [(files[place], labels[place]) for place in places]


def _names(relative: Path, word: str) -> bool:
    """Whether a word of the file's name, or a folder above it, is this one; shards and ``x_val.csv`` count."""
    return word in (*relative.parts[:-1], *re.split(r"[-_.]", relative.stem))


def _label(file: str, stem: str, parts: Sequence[HubPart]) -> str:
    """The label of the part that publishes this file; else the longest that stands in its path as whole words."""
    for part in parts:
        if file in part.files:
            return part.label
    padded = f"_{subset_key(stem)}_"
    found = [part.label for part in parts if part.label and f"_{subset_key(part.label)}_" in padded]
    return max(found, key=len, default="")

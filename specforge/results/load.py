"""Reads saved runs: pytest-benchmark's JSON, our run files (the same format), a single record, and a sweep's levels.

A run is named by a file, by a folder that holds one run's JSON, or as pytest-benchmark names what it stored: its
number (``0001``), or the beginning of its name (``0001_before``, ``*/0001``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, cast

import orjson

from specforge.errors import RecordError
from specforge.results.record import FORMAT, CellRecord

STORAGE = Path(".benchmarks")
"""Where pytest-benchmark keeps saved runs by default, seen from the working directory."""

_PARTS = ("config", "benchmark", "metrics", "requests")


@dataclass(frozen=True)
class SavedRun:
    """A run's records.

    Attributes:
        label: what tables call it.
        cells: the records, in the order in which they were measured.
        folder: what relative paths of rows files start from.
        machine: pytest-benchmark's ``machine_info``; empty where there is none.
        notes: what was left out while reading.
    """

    label: str
    cells: list[CellRecord]
    folder: Path
    machine: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_run(reference: str, storage: Path = STORAGE) -> SavedRun:
    """Finds and reads a run.

    Raises:
        RecordError: there is no such run, more than one, or the file isn't one.
    """
    path = find_run(reference, storage)
    document = read_json(path)
    if _looks_like_record(document):
        return SavedRun(path.stem, [checked(document, path, "the record")], path.parent)
    if _is_sweep(document):
        levels = [checked(level, path, f"level {number}") for number, level in enumerate(document["cells"], 1)]
        return SavedRun(path.stem, levels, path.parent)
    entries = document.get("benchmarks") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise RecordError(
            f"{path}: no record of a benchmark: it has neither a list 'benchmarks' nor the keys {', '.join(_PARTS)}"
        )
    unmeasured = document.get("unmeasured")
    if isinstance(unmeasured, list):
        entries = [*entries, *unmeasured]
    cells, foreign = [], 0
    for number, entry in enumerate(entries, 1):
        extra = entry.get("extra_info") if isinstance(entry, dict) else None
        if _looks_like_record(extra):
            cells.append(checked(extra, path, f"benchmark {number}"))
        else:
            foreign += 1
    if not cells:
        raise RecordError(
            f"{path}: none of its {len(entries)} benchmarks has a record in extra_info; "
            "it was written by other tests, or by an older version"
            if entries
            else f"{path}: the run has no benchmarks"
        )
    notes = (f"{path}: {foreign} of {len(entries)} benchmarks are of other tests and left out",) if foreign else ()
    machine = document.get("machine_info")
    return SavedRun(path.stem, cells, path.parent, machine if isinstance(machine, dict) else {}, notes)


def find_run(reference: str, storage: Path = STORAGE) -> Path:
    """The file that a reference means.

    Raises:
        RecordError: it means none, or several.
    """
    path = Path(reference)
    if path.is_file():
        return path
    if path.is_dir():
        found = sorted(path.glob("*.json"))
        beside = path.with_name(path.name + ".json")
        if not found and beside.is_file():
            return beside
        return _only(found, reference, f"the folder {reference!r} holds no run (no *.json file)")
    platform, _, name = reference.rpartition("/")
    pattern = name.rstrip("*") + "*.json"
    if path.is_absolute():
        name = ""  # a path, and never a name in the storage
    found = sorted(storage.glob(f"{platform or '*'}/{pattern}")) if name else []
    if name and not platform:
        found += sorted(storage.glob(pattern))
    return _only(
        found, reference, f"there is no run {reference!r}: neither a file nor the beginning of a name in {storage}"
    )


def _only(found: list[Path], reference: str, nothing: str) -> Path:
    if not found:
        raise RecordError(nothing)
    if len(found) > 1:
        some = ", ".join(str(path) for path in found[:4]) + (", ..." if len(found) > 4 else "")
        raise RecordError(f"{reference!r} means {len(found)} runs, name one of them: {some}")
    return found[0]


def read_json(path: Path) -> Any:
    """What a JSON file holds, NaN and Infinity included.

    Raises:
        RecordError: it can't be read, or isn't whole.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content)  # pytest-benchmark writes NaN and Infinity, which are not JSON
    except (ValueError, RecursionError) as error:
        what = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "not JSON"
        raise RecordError(f"{path}: not a whole JSON file, {what}") from None


def _looks_like_record(found: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(found, dict) and all(part in found for part in ("config", "benchmark", "metrics"))


def _is_sweep(found: Any) -> bool:
    """Whether it is what ``specforge benchmark`` writes of several levels."""
    cells = found.get("cells") if isinstance(found, dict) and "sweep" in found else None
    return isinstance(cells, list) and bool(cells) and all(map(_looks_like_record, cells))


def checked(record: dict[str, Any], path: Path, where: str) -> CellRecord:
    """The record, once it is known to have its parts.

    Raises:
        RecordError: it lacks one, or is of a later format; ``where`` says which record of the file it is.
    """
    version = record.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise RecordError(f"{path}: {where} has the format {version!r}; this version of specforge reads up to {FORMAT}")
    broken = [part for part in _PARTS if not isinstance(record.get(part), dict)]
    if broken:
        raise RecordError(f"{path}: {where} is damaged: {', '.join(broken)} is no object")
    lengths = {name: len(column) if isinstance(column, list) else -1 for name, column in record["requests"].items()}
    if len(set(lengths.values())) > 1:
        raise RecordError(f"{path}: {where} is damaged: the columns of its requests differ in length")
    for name, empty in (("environment", {}), ("status", "ok"), ("reason", None), ("rows", None)):
        record.setdefault(name, empty)
    return cast(CellRecord, record)

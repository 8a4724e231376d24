"""Writes a page or a table that the user asked for by ``--output``."""

from __future__ import annotations

from pathlib import Path

from specforge.errors import UsageError


def write_text(path: Path, text: str) -> None:
    """Writes a text file.

    Raises:
        UsageError: it can't be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output: {str(path)!r} can't be written: {error.strerror}") from None

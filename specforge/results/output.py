"""Writes a page or a table that the user asked for."""

from __future__ import annotations

from pathlib import Path

from specforge.errors import UsageError


def write_text(path: Path, text: str, flag: str = "--output") -> None:
    """Writes a text file.

    Raises:
        UsageError: it can't be written; the message names the flag.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")  # half a surrogate pair is no UTF-8
    except OSError as error:
        raise _unwritable(path, flag, error) from None


def check_writable(path: Path, flag: str) -> None:
    """Finds out before the work that the file can't be written after it.

    Raises:
        UsageError: naming the flag.
    """
    is_new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise _unwritable(path, flag, error) from None
    if is_new:
        path.unlink()


def _unwritable(path: Path, flag: str, error: OSError) -> UsageError:
    return UsageError(f"{flag}: {str(path)!r} can't be written: {error.strerror}")

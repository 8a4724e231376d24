"""Reading the end of a server's log."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TAIL_BYTES = 16384


def last_lines(path: Path, count: int) -> list[str]:
    """The last ``count`` lines with text, as a terminal would show them; fewer where there are not so many."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    # A progress bar rewrites its line after a carriage return.
    lines = [_ESCAPES.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in text.split("\n")]
    return [line for line in lines if line][-count:]


def end_of_log(path: Path, count: int = 15) -> str:
    """The log's path and its last lines, to be put below an error's own line."""
    lines = last_lines(path, count)
    return f"the end of {path}:\n" + "\n".join(f"    {line}" for line in lines) if lines else f"{path} is empty"

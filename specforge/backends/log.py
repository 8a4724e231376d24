"""A server's log: where its output goes, and how the last of it is read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO

from specforge.errors import OutputError

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TAIL_BYTES = 16384
_QUOTED_LINES = 15


class ServerLog:
    """The file that holds the output of one configuration's servers, read from where the present one began."""

    def __init__(self, path: Path, command: str) -> None:
        """Makes the folder if it is missing, and opens the file for appending with the command as its heading.

        Raises:
            OutputError: it can't be written.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file: IO[bytes] = path.open("ab", buffering=0)
            self.file.write(f"$ {command}\n".encode("utf-8", "replace"))
        except OSError as error:
            raise OutputError.of(path, error) from None
        self._start = self.file.tell()

    def close(self) -> None:
        """Closes this process's end of it; it can still be read."""
        self.file.close()

    def last_lines(self, count: int) -> list[str]:
        """The last ``count`` lines with text, as a terminal would show them; fewer where there are not so many."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(self._start, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return []
        # A progress bar rewrites its line after a carriage return.
        lines = [_ESCAPES.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in text.split("\n")]
        return [line for line in lines if line][-count:]

    def ending(self) -> str:
        """The path and the last lines, to be put at the end of an error's own line."""
        lines = self.last_lines(_QUOTED_LINES)
        if not lines:
            return f"it wrote nothing to {self.path}"
        return f"the end of {self.path}:\n" + "\n".join(f"    {line}" for line in lines)

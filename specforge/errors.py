"""The errors that a user sees, each with one line that says what to do.

SpecForgeError
├── UsageError          a flag, a file or a combination of them is wrong; nothing was started
├── DatasetError        a dataset can't be loaded, or its rows are not what they should be
├── RecordError         a saved run can't be read, or two runs can't be compared
├── ServerError         the server did not start, died, hung, or is not what was asked for
├── RequestError        one request failed for good, after its retries
└── OutputError         a record, a row or a log can't be written any more: the disk is full, or gone
"""

from __future__ import annotations

from pathlib import Path


class SpecForgeError(Exception):
    """Base of all errors that the harness raises on purpose; its text is one line for the user."""


class UsageError(SpecForgeError):
    """A flag or a file given by the user is wrong: pytest's exit code 4, the commands' exit code 2."""


class DatasetError(SpecForgeError):
    """A dataset can't be loaded (unreachable, gated, missing columns) or a row of it is malformed."""


class RecordError(SpecForgeError):
    """A saved run can't be read, or two saved runs can't be compared."""


class ServerError(SpecForgeError):
    """The server did not start, died, hung, or reports other settings than those asked for."""


class RequestError(SpecForgeError):
    """A request failed for good."""


class OutputError(SpecForgeError):
    """What was measured can't be kept."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> OutputError:
        """The error for a file that the system would not have written."""
        return cls(f"{path}: can't be written: {error.strerror}; expected room there, or another --output-dir")

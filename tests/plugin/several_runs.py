"""Runs pytest several times in one process, each as its own command line would; saves starting an interpreter each.

python several_runs.py RUNS.json     [["bench_tests", "--collect-only"], ...]  ->  [{"code": 0, "output": "..."}, ...]
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import pytest


def main(path: Path) -> None:
    """Replaces the file's lists of arguments by what came of them."""
    results = []
    for arguments in json.loads(path.read_text(encoding="utf-8")):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = pytest.main(arguments)
        results.append({"code": int(code), "output": said.getvalue()})
    path.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""What of this machine a Python interpreter needs to run, so that all else can be hidden from programs."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path

GUEST = Path(__file__).resolve().parent / "guest"
"""The folder of what runs inside the sandbox."""

BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from guest.enter import main; main()"
"""What starts the guest: the folder that holds ``guest`` and the plan follow as arguments."""

FLAGS = ("-S", "-s", "-B")
"""No site module, whose .pth files run code, no user packages, no byte code written."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


def executable() -> str:
    """The interpreter itself, behind a virtual environment's links."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def site_folders() -> tuple[str, ...]:
    """The folders of installed packages, which programs may import."""
    return tuple(folder for folder in site.getsitepackages() if os.path.isdir(folder))


def readable_paths() -> tuple[str, ...]:
    """Folders and files that programs may read: the system's, the interpreter's and the guest's own; parents first."""
    wanted = [
        *_SYSTEM,
        sys.base_prefix,
        sys.base_exec_prefix,
        os.path.dirname(executable()),
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        *site_folders(),
        str(GUEST),
    ]
    kept: list[str] = []
    for path in sorted({os.path.abspath(path) for path in wanted if os.path.lexists(path)}):
        if not any(path.startswith(above.rstrip("/") + "/") and not os.path.islink(above) for above in kept):
            kept.append(path)
    return tuple(kept)

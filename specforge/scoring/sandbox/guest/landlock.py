"""File access narrowed to a few folders by Landlock, which needs no rights: for where there are no namespaces."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Sequence

from .kernel import Libc

_READ_FILE, _READ_DIR, _EXECUTE, _WRITE_FILE, _TRUNCATE = 1 << 2, 1 << 3, 1 << 0, 1 << 1, 1 << 14
_FILE_RIGHTS = _READ_FILE | _EXECUTE | _WRITE_FILE | _TRUNCATE
_BITS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many kinds of file access each version can refuse; 16 from version 5 on."""


def restrict(libc: Libc, readable: Sequence[str], writable: Sequence[str]) -> None:
    """Refuses this process and its children all files but those beneath the given paths, TCP, and (where the kernel
    can) signals to others. Paths that don't exist are passed over.

    Raises:
        OSError: the kernel can't.
    """
    version = libc.landlock_version()
    everything = (1 << _BITS.get(version, 16)) - 1
    attributes = struct.pack("<Q", everything)
    if version >= 4:
        attributes += struct.pack("<Q", 3)  # binding and connecting TCP sockets
    if version >= 6:
        attributes += struct.pack("<Q", 3)  # abstract sockets and signals outside the domain
    ruleset = libc.landlock_create(attributes)
    try:
        for paths, rights in ((readable, _READ_FILE | _READ_DIR | _EXECUTE), (writable, everything)):
            for path in paths:
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    _allow(libc, ruleset, path, rights & everything)
        libc.no_new_privileges()
        libc.landlock_restrict(ruleset)
    finally:
        os.close(ruleset)


def _allow(libc: Libc, ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        libc.landlock_allow(ruleset, struct.pack("<Qi", rights, fd))
    finally:
        os.close(fd)

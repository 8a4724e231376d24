"""The folder that programs write in, where they share one: measured while they run, emptied after each."""

from __future__ import annotations

import contextlib
import os

MOST_ENTRIES = 4096
"""Files and folders that a program may make."""


def size_of(folder: str, most: int) -> int:
    """Bytes of the files beneath ``folder``, as far as they can be seen; above ``most`` where there are too many."""
    total = entries = 0
    waiting = [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                entries += 1
                if entries > MOST_ENTRIES or total > most:
                    return most + 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def empty(folder: str) -> None:
    """Removes all that is in ``folder``, whatever its modes and however deep.

    Folders are moved up before they are emptied, since a path may be longer than the kernel takes.

    Raises:
        OSError: something can't be removed.
    """
    moved = 0
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        for entry in list(os.scandir(here)):
            if entry.is_dir(follow_symlinks=False):
                moved += 1
                target = os.path.join(folder, f".removed-{os.getpid()}-{moved}")
                os.chmod(entry.path, 0o700)
                if here != folder:
                    os.rename(entry.path, target)
                waiting.append(target if here != folder else entry.path)
            else:
                os.unlink(entry.path)
        if here != folder:
            os.rmdir(here)

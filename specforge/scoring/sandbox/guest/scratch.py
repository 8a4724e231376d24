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

    It goes down and up by open folders, since a path may be longer than the kernel takes.

    Raises:
        OSError: something can't be removed.
    """
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    below: list[str] = []
    try:
        while True:
            inner = _without_files(here)
            if inner is not None:
                os.chmod(inner, 0o700, dir_fd=here)
                next_one = os.open(inner, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
                below.append(inner)
            elif below:
                next_one = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
                os.rmdir(below.pop(), dir_fd=next_one)
            else:
                return
            os.close(here)
            here = next_one
    finally:
        os.close(here)


def _without_files(fd: int) -> str | None:
    """Removes the files of an open folder up to the first folder in it, whose name it returns."""
    with os.scandir(fd) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            os.unlink(entry.name, dir_fd=fd)
    return None

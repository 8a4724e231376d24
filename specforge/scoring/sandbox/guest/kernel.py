"""The few system calls that confinement needs and Python has no function for. Linux; elsewhere each raises OSError."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47

_SYS_MOUNT_SETATTR = 442
_SYS_LANDLOCK_CREATE = 444
_SYS_LANDLOCK_ADD = 445
_SYS_LANDLOCK_RESTRICT = 446
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000


class Libc:
    """The C library of this process, its functions turned into ones that raise OSError."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def _call(self, name: str, *arguments: Any) -> int:
        function = getattr(self._libc, name, None)
        if function is None:
            raise OSError(errno.ENOSYS, f"this system has no {name}")
        result: int = function(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return result

    def _syscall(self, number: int | None, *arguments: Any) -> int:
        if number is None:
            raise OSError(errno.ENOSYS, "not known for this processor")
        wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
        return self._call("syscall", ctypes.c_long(number), *wide)

    def _prctl(self, option: int, *arguments: int) -> None:
        values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
        self._call("prctl", option, *values)

    def unshare(self, flags: int) -> None:
        """Moves this process (its children, for CLONE_NEWPID) into new namespaces."""
        self._call("unshare", flags)

    def setns(self, fd: int, kind: int) -> None:
        """Moves this process (its children, for CLONE_NEWPID) into the namespace of ``fd``."""
        self._call("setns", fd, kind)

    def mount(self, source: str, target: str, kind: str, flags: int, data: str = "") -> None:
        """mount(2)."""
        self._call(
            "mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode() or None
        )

    def unmount(self, target: str) -> None:
        """umount2(2), lazily."""
        self._call("umount2", target.encode(), MNT_DETACH)

    def make_read_only(self, target: str) -> None:
        """Makes a mount and all below it read-only, without devices or set-user-id programs."""

        class Attributes(ctypes.Structure):
            _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]

        attributes = Attributes(set=MS_RDONLY | MS_NOSUID | MS_NODEV)
        self._syscall(
            _SYS_MOUNT_SETATTR,
            _AT_FDCWD,
            target.encode(),
            _AT_RECURSIVE,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
        )

    def pivot_root(self, new: str, old: str) -> None:
        """pivot_root(2)."""
        self._syscall(_SYS_PIVOT_ROOT.get(os.uname().machine), new.encode(), old.encode())

    def die_with_parent(self) -> None:
        """Has the kernel kill this process when the thread that started it ends."""
        self._prctl(_PR_SET_PDEATHSIG, 9)

    def hide_memory(self) -> None:
        """Keeps other processes of the same user from tracing this one or reading its memory."""
        self._prctl(_PR_SET_DUMPABLE, 0)

    def adopt_orphans(self) -> None:
        """Makes this process the parent of its descendants whose own parents end."""
        self._prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def no_new_privileges(self) -> None:
        """Keeps this process and its children from gaining rights through set-user-id programs."""
        self._prctl(_PR_SET_NO_NEW_PRIVS, 1)

    def drop_capabilities(self) -> None:
        """Gives up every capability for good."""
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        self._syscall(_SYS_CAPSET.get(os.uname().machine), ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
        try:
            self._prctl(_PR_CAP_AMBIENT, 4)
        except OSError as error:
            if error.errno != errno.EINVAL:  # kernels before 4.3 have no ambient set to clear
                raise

    def filter_syscalls(self, program: bytes) -> None:
        """Installs a seccomp filter: ``program`` is an array of ``struct sock_filter``."""

        class Program(ctypes.Structure):
            _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

        self._call("prctl", _PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(Program(len(program) // 8, program)), 0, 0)

    def landlock_version(self) -> int:
        """The kernel's version of Landlock.

        Raises:
            OSError: the kernel has none, or it is switched off.
        """
        return self._syscall(_SYS_LANDLOCK_CREATE, None, 0, 1)

    def landlock_create(self, attributes: bytes) -> int:
        """A new ruleset's file descriptor; ``attributes`` is a ``struct landlock_ruleset_attr``."""
        return self._syscall(_SYS_LANDLOCK_CREATE, attributes, len(attributes), 0)

    def landlock_allow(self, ruleset: int, path_beneath: bytes) -> None:
        """Adds a rule; ``path_beneath`` is a ``struct landlock_path_beneath_attr``."""
        self._syscall(_SYS_LANDLOCK_ADD, ruleset, 1, path_beneath, 0)

    def landlock_restrict(self, ruleset: int) -> None:
        """Restricts this process and its children to what the ruleset allows."""
        self._syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0)

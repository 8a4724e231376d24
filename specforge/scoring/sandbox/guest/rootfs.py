"""The sandbox's own namespaces and file system, where no bubblewrap or container made them."""

from __future__ import annotations

import os

from . import kernel
from .kernel import Libc
from .plan import Plan

_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def leave_namespaces(libc: Libc, whole: bool) -> None:
    """Moves this process into namespaces of its own (its children, for the one of processes).

    Args:
        libc: system calls.
        whole: all kinds of namespaces; else only those that keep one program from another.

    As root nothing else is needed; another user needs a user namespace, in which it keeps its number.

    Raises:
        OSError: the kernel or a policy forbids it.
    """
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID
    if whole:
        flags |= kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
    try:
        libc.unshare(flags)
    except PermissionError:
        unshare_user(libc, flags)


def unshare_user(libc: Libc, flags: int) -> None:
    """Moves this process into a user namespace, where it has all rights, and the namespaces of ``flags``."""
    uid, gid = os.geteuid(), os.getegid()
    libc.unshare(kernel.CLONE_NEWUSER | flags)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def build(libc: Libc, plan: Plan) -> None:
    """Makes a read-only file system of the plan's folders and moves this process into it.

    Raises:
        OSError: a mount was refused.
    """
    root = plan.root
    libc.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    libc.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
    for path in plan.readable:
        _lend(libc, path, root + path)
    for path in _DEVICES:
        _bind(libc, path, root + path)
    for path in ("/proc", "/dev/shm"):
        os.makedirs(root + path, exist_ok=True)
    libc.mount("proc", root + "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    os.makedirs(root + plan.scratch)
    libc.mount("tmpfs", root + plan.scratch, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=64m")
    os.chdir(root)
    libc.pivot_root(".", ".")
    libc.unmount(".")
    os.chdir("/")
    libc.mount("none", "/", "", kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID)


def _lend(libc: Libc, path: str, target: str) -> None:
    if os.path.islink(path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(path), target)
    elif os.path.exists(path):
        _bind(libc, path, target)
        libc.make_read_only(target)


def _bind(libc: Libc, path: str, target: str) -> None:
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w"):
            pass
    libc.mount(path, target, "", kernel.MS_BIND | kernel.MS_REC)

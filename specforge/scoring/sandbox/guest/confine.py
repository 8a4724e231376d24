"""Giving up rights: what a program's and a judge's process does to itself before it touches anything foreign."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import replace
from math import ceil

from . import kernel, landlock, seccomp
from .kernel import Libc
from .plan import Limits, Plan, Powers
from .scratch import MOST_ENTRIES

_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def limit(limits: Limits, cpu_s: float) -> None:
    """Sets the limits that the kernel keeps for a process and its children."""
    cpu = ceil(cpu_s) + 1
    for name, value in (
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", cpu),
        ("RLIMIT_AS", limits.memory),
        ("RLIMIT_FSIZE", limits.output),
        ("RLIMIT_NOFILE", 128),
        ("RLIMIT_NPROC", limits.processes),
        ("RLIMIT_MEMLOCK", 0),
        ("RLIMIT_MSGQUEUE", 0),
    ):
        _lower(getattr(resource, name, None), value)
    # deep recursion in C needs a large stack; the space is only taken as it is used
    stack = getattr(resource, "RLIMIT_STACK", None)
    if stack is not None:
        hard = resource.getrlimit(stack)[1]
        wanted = 256 << 20
        _lower(stack, wanted if hard == resource.RLIM_INFINITY else min(hard, wanted))


def _lower(name: int | None, value: int) -> None:
    if name is None:
        return
    hard = resource.getrlimit(name)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(OSError, ValueError):  # macOS refuses some; the probe says what holds
        resource.setrlimit(name, (value, value))


def become(uid: int) -> None:
    """Takes on another user's number, without groups."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def confine_program(libc: Libc, plan: Plan, powers: Powers, limits: Limits) -> None:
    """Confines the process of a program, with all that this kernel lends."""
    os.setsid()
    if powers.nested:
        own_mounts(libc, plan, limits)
    os.chdir(plan.scratch)
    _give_up(libc, plan.uid if powers.uid else None)
    if not (powers.namespaces or powers.uid):
        # the kernel counts all processes of the user's; what others run must not be taken for the program's
        limits = replace(limits, processes=limits.processes + _running_tasks(os.geteuid()))
    limit(limits, limits.wall_s)
    if powers.landlock and not powers.nested:
        landlock.restrict(libc, (*plan.readable, *_DEVICES), (plan.scratch, "/dev/null"))
    if powers.seccomp:
        libc.filter_syscalls(seccomp.filter_program(own_pid=None if powers.nested else os.getpid()))


def confine_judge(libc: Libc, plan: Plan, powers: Powers, limits: Limits) -> None:
    """Confines the process of a judge: the tests of a dataset come from strangers too."""
    _give_up(libc, plan.uid + 1 if powers.uid else None)
    libc.hide_memory()
    limit(replace(limits, processes=0), limits.wall_s)
    if powers.seccomp:
        libc.filter_syscalls(seccomp.filter_program(own_pid=os.getpid()))


def _running_tasks(uid: int) -> int:
    total = 0
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == uid:
                    total += len(os.listdir(f"{entry.path}/task"))
    return total


def own_mounts(libc: Libc, plan: Plan, limits: Limits) -> None:
    """Gives this process a scratch folder and shared memory that go with it, and no /proc."""
    libc.unshare(kernel.CLONE_NEWNS)
    libc.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    for folder in (plan.scratch, "/dev/shm"):
        if os.path.isdir(folder):
            libc.mount("tmpfs", folder, "tmpfs", flags, f"mode=777,size={limits.scratch},nr_inodes={MOST_ENTRIES}")
    libc.mount("tmpfs", "/proc", "tmpfs", flags | kernel.MS_NOEXEC | kernel.MS_RDONLY, "size=4k,nr_inodes=2")


def _give_up(libc: Libc, uid: int | None) -> None:
    if uid is not None:
        become(uid)
    with contextlib.suppress(OSError):  # elsewhere than on Linux; the probe says what holds
        libc.drop_capabilities()
        libc.no_new_privileges()

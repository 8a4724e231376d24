"""Where a sandbox's first process starts: makes the sandbox, finds out what is possible in it, serves the host."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from . import confine, kernel, rootfs, seccomp
from .kernel import Libc
from .plan import Limits, Plan, Powers
from .spawner import start_spawner
from .supervisor import Supervisor
from .wire import write_frame

_USED_BY_PROGRAMS = (
    *("bisect", "copy", "functools", "heapq", "itertools", "math", "operator"),
    *("random", "re", "statistics", "string", "types", "typing"),
)
_HOST = (0, 1)


def main() -> NoReturn:
    """Reads the plan from the command line and serves the host over standard input and output. Never returns.

    The first frame to the host is ``{"powers": [...]}``, or ``{"error": ...}`` where the sandbox can't be made.
    """
    plan = Plan.of_document(json.loads(sys.argv[1]))
    sys.path[:] = [path for path in sys.path[1:] if path] + list(plan.site)
    libc = Libc()
    if plan.build_root or plan.inner:
        # without namespaces nothing would end the programs then: this process must live on to do it, and does when
        # the host's pipe closes
        with contextlib.suppress(OSError):
            libc.die_with_parent()
    try:
        inside = _enter(libc, plan)
        powers = _powers(libc, plan, inside)
        if powers.uid and not powers.nested:
            os.chmod(plan.scratch, 0o777)
        for name in _USED_BY_PROGRAMS:
            importlib.import_module(name)
        gc.freeze()
        spawner = start_spawner(libc, plan, powers)
        with contextlib.suppress(OSError):
            libc.hide_memory()
    except OSError as error:
        write_frame(_HOST[1], json.dumps({"error": str(error)}).encode())
        os._exit(1)
    write_frame(_HOST[1], json.dumps({"powers": powers.names()}).encode())
    try:
        Supervisor(libc, plan, powers, spawner, _HOST).serve()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _enter(libc: Libc, plan: Plan) -> bool:
    """Moves into namespaces of the sandbox's own where that is possible; whether it was.

    Raises:
        OSError: it is not possible, and nothing else keeps the programs in.
    """
    if not (plan.build_root or plan.inner):
        return False
    if not plan.build_root and not _can(lambda: _new_namespaces(libc, plan)):
        return False
    _new_namespaces(libc, plan)
    return True


def _new_namespaces(libc: Libc, plan: Plan) -> None:
    rootfs.leave_namespaces(libc, whole=plan.build_root)
    _continue_as_first_process(libc)
    if plan.build_root:
        rootfs.build(libc, plan)
    else:
        libc.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        libc.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _continue_as_first_process(libc: Libc) -> None:
    """Goes on as process 1 of the new namespace; the process outside waits and ends as this one does."""
    child = os.fork()
    if child:
        for fd in _HOST:
            os.close(fd)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc.die_with_parent()


def _powers(libc: Libc, plan: Plan, inside: bool) -> Powers:
    limits = Limits(wall_s=1, memory=1 << 30, processes=8, output=1 << 20, scratch=1 << 20)

    def own_process_namespace() -> None:
        libc.unshare(kernel.CLONE_NEWPID)
        confine.own_mounts(libc, plan, limits)

    def another_user() -> None:
        confine.become(plan.uid)
        with open(os.__file__):  # the interpreter may lie where only root can read
            pass

    return Powers(
        namespaces=inside,
        nested=inside and _can(own_process_namespace),
        uid=os.geteuid() == 0 and _can(another_user),
        seccomp=_can(lambda: _filter(libc)),
        landlock=_can(lambda: _landlock(libc)),
    )


def _filter(libc: Libc) -> None:
    libc.no_new_privileges()
    libc.filter_syscalls(seccomp.filter_program())


def _landlock(libc: Libc) -> None:
    libc.landlock_version()


def _can(attempt: Callable[[], None]) -> bool:
    """Whether ``attempt`` works, tried in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            attempt()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0

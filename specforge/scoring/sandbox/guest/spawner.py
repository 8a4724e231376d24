"""The process that programs are forked from. It is started before the first job and reads nothing but limits, so that
no program can find a test, an expected value or another program in the memory that it inherits."""

from __future__ import annotations

import array
import contextlib
import json
import os
import resource
import signal
import socket
import time
from typing import NoReturn

from . import kernel
from .confine import confine_program
from .kernel import Libc
from .plan import Limits, Plan, Powers
from .program import run_script, serve_calls
from .wire import Channel

_MESSAGE = 4096


class Spawner:
    """The supervisor's end: starts one program at a time and says how it ended."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def start(self, script: bool, limits: Limits, fds: list[int]) -> int:
        """Starts a program and returns its process id.

        Args:
            script: whether it runs as a script; else it answers calls.
            limits: what it may use.
            fds: the channel; for a script also its standard input, output and error.

        Raises:
            OSError: it could not be confined or started.
        """
        order = json.dumps({"script": script, "limits": limits.__dict__}).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())]
        self._sock.sendmsg([order], rights)
        return int(self._answer()["pid"])

    def ended(self) -> dict[str, int]:
        """Waits until the program and all that it started are gone: ``status`` (as waitpid has it), ``cpu_ms``."""
        return self._answer()

    def fileno(self) -> int:
        """Readable when the program has ended."""
        return self._sock.fileno()

    def _answer(self) -> dict[str, int]:
        body = self._sock.recv(_MESSAGE)
        if not body:
            raise OSError("the spawner ended")
        answer = json.loads(body)
        if "error" in answer:
            raise OSError(answer["error"])
        return dict(answer)


def start_spawner(libc: Libc, plan: Plan, powers: Powers) -> tuple[Spawner, int]:
    """Forks the spawner; its end and its process id."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            with contextlib.suppress(OSError):
                libc.die_with_parent()
                libc.hide_memory()
                libc.adopt_orphans()
            close_all_but(theirs.fileno())
            _serve(theirs, libc, plan, powers)
        finally:
            os._exit(1)
    theirs.close()
    return Spawner(ours), pid


def close_all_but(*kept: int) -> None:
    """Closes every file descriptor but ``kept`` and points the standard ones at nothing."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if fd not in kept:
            os.dup2(null, fd)
    low = 3
    for fd in sorted({*kept, 4096}):
        if fd >= low:
            os.closerange(low, fd)
            low = fd + 1


def _serve(sock: socket.socket, libc: Libc, plan: Plan, powers: Powers) -> NoReturn:
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if powers.nested else -1
    while True:
        order, ancillary, _, _ = sock.recvmsg(_MESSAGE, socket.CMSG_SPACE(16))
        if not order:
            os._exit(0)
        fds = array.array("i")
        for _, _, data in ancillary:
            fds.frombytes(data)
        wanted = json.loads(order)
        limits = Limits(**wanted["limits"])
        try:
            if powers.nested:
                libc.unshare(kernel.CLONE_NEWPID)
            try:
                pid = os.fork()
                if pid == 0:
                    _become_program(libc, plan, powers, limits, list(fds), bool(wanted["script"]))
            finally:
                if powers.nested:
                    libc.setns(namespace, kernel.CLONE_NEWPID)
        except OSError as error:
            sock.send(json.dumps({"error": f"can't start a program: {error}"}).encode())
            continue
        finally:
            for fd in fds:
                os.close(fd)
        sock.send(json.dumps({"pid": pid}).encode())
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, status = os.waitpid(pid, 0)
        _end_leftovers()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        sock.send(json.dumps({"status": status, "cpu_ms": int(cpu * 1000)}).encode())


def _become_program(libc: Libc, plan: Plan, powers: Powers, limits: Limits, fds: list[int], script: bool) -> NoReturn:
    try:
        for target, fd in enumerate(fds[1:]):
            os.dup2(fd, target)
        channel = os.dup2(fds[0], 3)
        close_all_but(channel, *((0, 1, 2) if script else ()))
        confine_program(libc, plan, powers, limits)
        conversation = Channel(socket.socket(fileno=channel))
        if script:
            run_script(conversation)
        serve_calls(conversation)
    finally:
        os._exit(1)


def _end_leftovers() -> None:
    """Ends whatever the program left behind: orphans become children of this process, which is why it can see them."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for child in children_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.001)


def children_of(parent: int) -> list[int]:
    """The process ids of the descendants of ``parent``, by /proc; empty where there is none."""
    parents: dict[int, int] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = {parent}
    grown = True
    while grown:
        more = {pid for pid, above in parents.items() if above in found} - found
        found |= more
        grown = bool(more)
    return sorted(found - {parent})

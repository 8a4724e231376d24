"""The trusted process of a sandbox: takes jobs from the host, runs each behind its limits, and reports."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any

from .comparison import same_output
from .confine import confine_judge
from .judge import judge
from .kernel import Libc
from .plan import Limits, Plan, Powers
from .scratch import MOST_ENTRIES, empty, size_of
from .spawner import Spawner, children_of, close_all_but
from .wire import Channel, WireError, read_frame, write_frame

_TICK_S = 0.05
"""Seconds between two looks at what a running program takes."""

_VERDICT_BYTES = 1 << 16
_ERRORS_BYTES = 4096


class HostGone(Exception):
    """The host closed its pipe: nobody waits for a verdict."""


class Supervisor:
    """Runs one job after the other.

    Args:
        libc: system calls.
        plan: how this sandbox was made.
        powers: what is possible here.
        spawner: where programs come from, with its process id.
        host: file descriptors that jobs come from and verdicts go to.
    """

    def __init__(
        self, libc: Libc, plan: Plan, powers: Powers, spawner: tuple[Spawner, int], host: tuple[int, int]
    ) -> None:
        self._libc = libc
        self._plan = plan
        self._powers = powers
        self._spawner, self._spawner_pid = spawner
        self._jobs, self._verdicts = host

    def serve(self) -> None:
        """Serves the host until it closes its pipe."""
        while True:
            frame = read_frame(lambda size: os.read(self._jobs, size))
            if frame is None:
                return
            job = json.loads(frame)
            limits = Limits(**job["limits"])
            started = time.monotonic()
            try:
                verdict = self._scripts(job, limits) if job["way"] == "script" else self._conversation(job, limits)
            except HostGone:
                return
            except OSError as error:
                verdict = {"passed": False, "checks": 0, "reason": f"the sandbox failed: {error}", "fault": True}
            verdict["wall_s"] = round(time.monotonic() - started, 4)
            write_frame(self._verdicts, json.dumps(verdict).encode())

    def _conversation(self, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        ours, theirs = socket.socketpair()
        verdict_read, verdict_write = os.pipe()
        program = _Program(self, limits, False, [theirs.fileno()])
        theirs.close()
        judge_pid, said = 0, bytearray()
        try:
            judge_pid = os.fork()
            if judge_pid == 0:
                self._become_judge(ours, verdict_write, job, limits)
            ours.close()
            os.close(verdict_write)
            excess = program.watch({verdict_read: (said, _VERDICT_BYTES)}, until=verdict_read)
        finally:
            if judge_pid:
                os.kill(judge_pid, signal.SIGKILL)
                os.waitpid(judge_pid, 0)
            ended = program.end()
            os.close(verdict_read)
        try:
            verdict = dict(json.loads(said))
        except ValueError:
            verdict = {"passed": False, "checks": 0, "reason": excess or "the tests ended without a verdict"}
        if not verdict["passed"] and (excess or ended):
            verdict["reason"] = excess or f"{ended} ({verdict['reason']})"
        if excess:
            verdict["passed"] = False
        return verdict

    def _become_judge(self, sock: socket.socket, verdict: int, job: dict[str, Any], limits: Limits) -> None:
        try:
            close_all_but(sock.fileno(), verdict)
            confine_judge(self._libc, self._plan, self._powers, limits)
            said = judge(Channel(sock), job)
            os.write(verdict, json.dumps(said).encode())
        finally:
            os._exit(0)

    def _scripts(self, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        output = ""
        for number, test in enumerate(job["tests"]):
            output, reason = self._script(job, test["input"], limits)
            if not reason and test.get("output") is not None and not same_output(output, test["output"]):
                reason = "the output is another"
            if reason:
                reason = f"test {number + 1}: {reason}"
                return {"passed": False, "checks": number, "reason": reason, "output": output[:1000]}
        checks = sum(bool((test.get("output") or "").strip()) for test in job["tests"])
        reason = "" if checks else "the test checks nothing"
        return {"passed": not reason, "checks": checks, "reason": reason, "output": output[:1000]}

    def _script(self, job: dict[str, Any], text: str, limits: Limits) -> tuple[str, str]:
        ours, theirs = socket.socketpair()
        printed, errors = bytearray(), bytearray()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        stdin = _file_of(text)
        try:
            program = _Program(self, limits, True, [theirs.fileno(), stdin, out_write, err_write])
        finally:
            theirs.close()
            for fd in (stdin, out_write, err_write):
                os.close(fd)
        with contextlib.suppress(WireError):
            Channel(ours).send({"source": job["source"], "prelude": job.get("prelude", "")})
        ours.close()
        try:
            excess = program.watch(
                {out_read: (printed, limits.output), err_read: (errors, _ERRORS_BYTES)}, until=None, lossy=err_read
            )
        finally:
            ended = program.end()
            os.close(out_read)
            os.close(err_read)
        said = errors.decode("utf-8", "replace").strip()[:200]
        return printed.decode("utf-8", "replace"), excess or (f"{ended}: {said}" if ended and said else ended)


def _file_of(text: str) -> int:
    fd = os.memfd_create("stdin")
    view = memoryview(text.encode("utf-8", "surrogatepass"))
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class _Program:
    """One running program, watched."""

    def __init__(self, owner: Supervisor, limits: Limits, script: bool, fds: list[int]) -> None:
        self._owner = owner
        self._limits = limits
        self._deadline = time.monotonic() + limits.wall_s
        self._pid = owner._spawner.start(script, limits, fds)
        self._ended: dict[str, int] | None = None
        self._killed = False

    def watch(self, sinks: dict[int, tuple[bytearray, int]], until: int | None, lossy: int | None = None) -> str:
        """Collects what the program prints, until it ended (or ``until`` is at its end).

        Args:
            sinks: for each file descriptor where to put what comes, and the most that may.
            until: the file descriptor whose end ends the watch; None: the end of the program.
            lossy: the file descriptor of which what is too much is dropped.

        Returns:
            The limit that was passed, in words; empty where none was.
        """
        owner, open_fds = self._owner, set(sinks)
        look = time.monotonic() + _TICK_S
        while (until in open_fds) if until is not None else (self._ended is None or bool(open_fds)):
            now = time.monotonic()
            if now >= self._deadline:
                return f"longer than {self._limits.wall_s:g} s"
            waited = [owner._jobs, *open_fds]
            if self._ended is None and until is None:
                waited.append(owner._spawner.fileno())
            ready = select.select(waited, [], [], max(0.0, min(self._deadline, look) - now))[0]
            if owner._jobs in ready:
                raise HostGone
            for fd in open_fds & set(ready):
                part = os.read(fd, 1 << 16)
                sink, most = sinks[fd]
                if not part:
                    open_fds.discard(fd)
                elif len(sink) + len(part) <= most:
                    sink += part
                elif fd != lossy:
                    return f"more than {most >> 20} MiB of output"
            if owner._spawner.fileno() in ready:
                self._ended = owner._spawner.ended()
            if time.monotonic() >= look:
                look = time.monotonic() + _TICK_S
                excess = self._excess()
                if excess:
                    return excess
        return ""

    def _excess(self) -> str:
        running = children_of(self._owner._spawner_pid)
        if len(running) > self._limits.processes:
            return f"more than {self._limits.processes} processes"
        memory = sum(_memory_of(pid) for pid in running)
        if memory > self._limits.memory:
            return f"more than {self._limits.memory >> 20} MiB of memory"
        most = self._limits.scratch
        if not self._owner._powers.nested and size_of(self._owner._plan.scratch, most) > most:
            return f"more than {most >> 20} MiB or {MOST_ENTRIES} files written"
        return ""

    def end(self) -> str:
        """Ends the program and all that it started, and removes its files; how it ended, where that was not well."""
        if self._ended is None:
            self._killed = True
            # a child of the spawner's that nobody has waited for: its number is still its own
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._ended = self._owner._spawner.ended()
        if not self._owner._powers.nested:
            empty(self._owner._plan.scratch)
        status = self._ended["status"]
        if os.WIFSIGNALED(status) and not self._killed:
            number = os.WTERMSIG(status)
            if number in (signal.SIGXCPU, signal.SIGKILL) and self._ended["cpu_ms"] >= 1000 * self._limits.wall_s:
                return f"longer than {self._limits.wall_s:g} s of processor time"
            return f"the program was ended by signal {number}"
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            return f"the program ended with status {os.WEXITSTATUS(status)}"
        return ""


def _memory_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))

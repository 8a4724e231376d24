"""What the user may set about the sandbox, and what can be said of the isolation that held."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from specforge.errors import UsageError

KINDS = ("auto", "bwrap", "namespace", "docker", "podman", "process")
"""The values of ``--code-sandbox``."""

LEVELS = ("none", "partial", "full")
"""How much isolation holds, least first; :class:`Isolation` says what each means."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """How model-written programs are run.

    Attributes:
        kind: ``auto`` takes the first of bwrap and namespace that isolates fully, else the best there is; the others
            insist on one. ``process`` is no namespaces: seccomp and Landlock alone.
        allow: whether model-written code may run at all (``--allow-code-execution``).
        unsafe: whether it may run where nothing isolates it (``--unsafe-code-execution``).
        wall_s: seconds that a program may take with all its tests; for a program that reads its standard input,
            with each of them.
        memory_mb: memory of a program with all its processes, in MiB.
        processes: processes and threads that a program may have at a time.
        output_mb: what a program may print, and the largest file it may write, in MiB.
        scratch_mb: what a program may write in all, in MiB.
        workers: programs run at a time; None is one a processor.
        image: the container image for docker and podman; it needs a ``python3``, 3.10 or newer.
    """

    kind: str = "auto"
    allow: bool = False
    unsafe: bool = False
    wall_s: float = 20.0
    memory_mb: int = 2048
    processes: int = 32
    output_mb: int = 16
    scratch_mb: int = 64
    workers: int | None = None
    image: str = "python:3-slim"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"--code-sandbox: {self.kind!r} is not one of {', '.join(KINDS)}")
        for flag, value in (("--code-timeout", self.wall_s), ("--code-memory", self.memory_mb)):
            if value <= 0:
                raise UsageError(f"{flag}: {value} is not above 0")
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--code-workers: {self.workers} is not at least 1")

    def worker_count(self) -> int:
        """Programs run at a time: as asked, else one for each processor that this process may use."""
        if self.workers is not None:
            return self.workers
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:
            return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Isolation:
    """What kept the programs in, as measured by a probe that tried to get out.

    Attributes:
        level: ``full``: every probe held, behind namespaces of the sandbox's own (or a container's).
            ``partial``: no namespaces, but the kernel refuses network, reading outside the interpreter and writing
            outside the scratch folder (seccomp and Landlock).
            ``none``: at least one of these three is open; only limits on time, memory and processes hold.
        kind: ``bwrap``, ``namespace``, ``docker``, ``podman`` or ``process``.
        reason: one line: why it is not better, or what gives it.
        held: each probe and whether it held: ``network``, ``read``, ``write``, ``processes``, ``environment``.
        mechanisms: what the kernel lent: ``namespaces``, ``nested``, ``uid``, ``seccomp``, ``landlock``.
    """

    level: str
    kind: str
    reason: str
    held: Mapping[str, bool] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ()

    def as_record(self) -> dict[str, object]:
        """The same as plain data, for a record."""
        return {
            "level": self.level,
            "kind": self.kind,
            "reason": self.reason,
            "held": dict(self.held),
            "mechanisms": list(self.mechanisms),
        }

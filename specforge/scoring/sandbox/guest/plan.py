"""What the host tells the guest when it starts it, and what of it the guest found to be possible."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Plan:
    """How a sandbox is to be made.

    Attributes:
        build_root: whether the guest makes its own namespaces and file system; else something outside did.
        inner: whether it tries for namespaces inside those that something outside made.
        readable: folders and files that programs may read, at the paths that they have outside.
        scratch: the folder in which programs may write.
        root: an empty folder of the host's on which the file system is built, where ``build_root`` is set.
        site: folders appended to the module search path of programs.
        uid: a user and group number that nobody uses, for programs, where the guest runs as root.
    """

    build_root: bool
    inner: bool
    readable: tuple[str, ...]
    scratch: str
    root: str = ""
    site: tuple[str, ...] = ()
    uid: int = 65534

    def as_document(self) -> dict[str, object]:
        """The same as plain data."""
        return asdict(self)

    @classmethod
    def of_document(cls, document: dict[str, object]) -> Plan:
        """The plan that :meth:`as_document` wrote."""
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
        return cls(**values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    Attributes:
        wall_s: seconds.
        memory: bytes of all its processes together.
        processes: processes and threads.
        output: bytes that it may print, and of the largest file.
        scratch: bytes that it may write in all.
    """

    wall_s: float
    memory: int
    processes: int
    output: int
    scratch: int


@dataclass(frozen=True)
class Powers:
    """What this kernel and this user allow.

    Attributes:
        namespaces: whether this guest made the namespaces that it runs in.
        nested: whether each program can have process and mount namespaces of its own.
        uid: whether programs can run as another user.
        seccomp: whether system calls can be filtered.
        landlock: whether file access can be narrowed without namespaces.
    """

    namespaces: bool
    nested: bool
    uid: bool
    seccomp: bool
    landlock: bool

    def names(self) -> list[str]:
        """The names of those that are there."""
        return [name for name, there in asdict(self).items() if there]

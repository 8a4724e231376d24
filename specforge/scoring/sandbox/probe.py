"""What holds, found out by trying to get out."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable

from specforge.scoring.sandbox.interpreter import readable_paths
from specforge.scoring.sandbox.settings import Isolation, SandboxSettings
from specforge.scoring.sandbox.worker import Sandbox, SandboxFailed

_ENVIRONMENT = {"HOME", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHASHSEED", "PWD", "TMPDIR"}
_ENVIRONMENT |= {"HOSTNAME", "LC_CTYPE"}  # a container sets its name; the interpreter its encoding

_PROGRAM = """
import json, os, sys
wanted = json.load(sys.stdin)
found = {"environment": sorted(os.environ)}
def attempt(name, action):
    try:
        found[name] = action()
    except Exception as error:
        found[name] = None
def connect():
    import socket
    with socket.create_connection(("127.0.0.1", wanted["port"]), timeout=1) as s:
        return s.recv(64).decode()
def write():
    with open(wanted["write"], "w") as file:
        file.write("written")
    return True
def signal():
    os.kill(wanted["pid"], 0)
    return True
attempt("network", connect)
attempt("read", lambda: open(wanted["read"]).read())
attempt("home", lambda: os.listdir(wanted["home"]))
attempt("write", write)
attempt("processes", signal)
print(json.dumps(found))
"""
_WITHOUT_NETWORK_FILES = ("network", "read", "write")


def probe(sandbox: Sandbox) -> dict[str, bool]:
    """Runs a program that tries to leave a started sandbox; for each way out whether it is closed.

    ``network``: a connection to a listener on the loopback. ``read``: a file of the temporary folder, and the names in
    the home folder. ``write``: a file beside it. ``processes``: a signal to this process. ``environment``: variables
    that the sandbox did not set.

    Raises:
        SandboxFailed: the program gave no answer.
    """
    folder = tempfile.mkdtemp(prefix="specforge-probe-")
    secret = secrets.token_hex(8)
    try:
        os.chmod(folder, 0o777)  # so that nothing but the sandbox keeps the program from it
        with open(os.path.join(folder, "secret"), "w") as file:
            file.write(secret)
        target = os.path.join(folder, "written")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            home = os.path.expanduser("~")
            wanted = {
                "home": home,
                "pid": os.getpid(),
                "port": listener.getsockname()[1],
                "read": file.name,
                "write": target,
            }
            verdict = sandbox.run(
                {"way": "script", "source": _PROGRAM, "tests": [{"input": json.dumps(wanted), "output": None}]}
            )
            listener.settimeout(0)
            reached = False
            with contextlib.suppress(OSError):
                listener.accept()[0].close()
                reached = True
        try:
            found = json.loads(verdict["output"])
        except ValueError:
            raise SandboxFailed(f"{sandbox.kind}: the probe gave no answer: {verdict['reason']}") from None
        return {
            "network": not reached and found["network"] is None,
            "read": found["read"] != secret and set(found["home"] or ()) <= _on_the_way(home),
            "write": not os.path.exists(target) and found["write"] is None,
            "processes": found["processes"] is None,
            "environment": set(found["environment"]) <= _ENVIRONMENT,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _on_the_way(home: str) -> set[str]:
    """The names in the home folder that lead to an interpreter installed there, all of which a sandbox must show."""
    inside = [os.path.relpath(path, home) for path in readable_paths() if path.startswith(home + os.sep)]
    return {path.split(os.sep)[0] for path in inside}


def judge_isolation(kind: str, powers: tuple[str, ...], held: dict[str, bool]) -> Isolation:
    """The level that a probe's findings amount to, as :class:`Isolation` defines the levels."""
    open_ways = [name for name, closed in held.items() if not closed]
    apart = kind in ("bwrap", "docker", "podman") or "namespaces" in powers
    if any(not held[name] for name in _WITHOUT_NETWORK_FILES):
        level, reason = "none", f"not closed: {', '.join(open_ways)}"
    elif apart and not open_ways:
        level, reason = "full", f"every way out is closed by {'namespaces' if kind == 'namespace' else kind}"
    else:
        closed_by = " and ".join(name for name in ("seccomp", "landlock", "namespaces") if name in powers)
        also = f"; not closed: {', '.join(open_ways)}" if open_ways else ""
        level, reason = (
            "partial",
            f"network and files are closed by {closed_by}, without a container or namespaces{also}",
        )
    return Isolation(level=level, kind=kind, reason=reason, held=held, mechanisms=powers)


def detect(settings: SandboxSettings, opened: Callable[[str, SandboxSettings], Sandbox] = Sandbox) -> Isolation:
    """Finds the kind of sandbox to use, as ``settings.kind`` asks, and says what it isolates.

    ``auto`` tries bwrap, then namespaces, then neither (seccomp and Landlock, where the kernel has them), and takes the
    first that is full, else the best; ``reason`` says what kept the others from it.

    Returns:
        the isolation; of level ``none`` and kind ``process`` where no kind can be started at all.
    """
    kinds = ("bwrap", "namespace", "process") if settings.kind == "auto" else (settings.kind,)
    best: Isolation | None = None
    failed: list[str] = []
    for kind in kinds:
        try:
            with opened(kind, settings) as sandbox:
                isolation = judge_isolation(kind, sandbox.powers, probe(sandbox))
        except SandboxFailed as error:
            failed.append(str(error))
            continue
        if isolation.level == "full":
            return isolation
        if best is None or _rank(isolation) > _rank(best):
            best = isolation
    if best is None:
        return Isolation(level="none", kind="process", reason="; ".join(failed))
    if not failed:
        return best
    return Isolation(best.level, best.kind, f"{best.reason} ({'; '.join(failed)})", best.held, best.mechanisms)


def _rank(isolation: Isolation) -> int:
    return ("none", "partial", "full").index(isolation.level)

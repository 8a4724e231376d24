"""The commands that start a sandbox of each kind."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import PurePath

from specforge.scoring.sandbox import interpreter
from specforge.scoring.sandbox.guest.plan import Plan
from specforge.scoring.sandbox.settings import SandboxSettings

_SCRATCH = "/scratch"
_FIRST_UID = 0x60000000
"""The first of the user numbers for programs where the harness runs as root: far from any that somebody has."""

_ROOT_RIGHTS = ("SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN", "FOWNER", "DAC_OVERRIDE", "SYS_PTRACE")


@dataclass(frozen=True, slots=True)
class Launch:
    """How one sandbox is started.

    Attributes:
        command: the program and its arguments.
        environment: all environment variables that it gets.
        scratch: a folder of the host's that programs write in; empty where the sandbox has one of its own.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    scratch: str = ""


def _environment(scratch: str) -> dict[str, str]:
    return {
        "HOME": scratch,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
        "PYTHONHASHSEED": "0",
        "TMPDIR": scratch,
    }


def _python(executable: str, guest_parent: str, plan: Plan) -> tuple[str, ...]:
    document = json.dumps(plan.as_document())
    return (executable, *interpreter.FLAGS, "-c", interpreter.BOOT, guest_parent, document)


def missing(kind: str) -> str | None:
    """Why a kind of sandbox can't be tried here at all; None where it can."""
    if kind in ("bwrap", "docker", "podman") and shutil.which(kind) is None:
        return f"{kind} is not installed"
    return None


def launch(kind: str, settings: SandboxSettings, folder: str, number: int) -> Launch:
    """How a sandbox of ``kind`` is started.

    Args:
        kind: ``bwrap``, ``namespace``, ``docker``, ``podman``, or ``process`` for no namespaces.
        settings: the user's.
        folder: an empty folder for this sandbox alone.
        number: a number that no other sandbox of this machine has at the moment.
    """
    if kind in ("docker", "podman"):
        return _container(kind, settings)
    readable = interpreter.readable_paths()
    uid = _FIRST_UID + 2 * number
    site = interpreter.site_folders()
    parent = str(interpreter.GUEST.parent)
    own = os.path.join(folder, "root")
    os.mkdir(own, 0o700)
    if kind == "process":
        plan = Plan(build_root=False, inner=False, readable=readable, scratch=own, site=site, uid=uid)
        return Launch(_python(interpreter.executable(), parent, plan), _environment(own), scratch=own)
    if kind == "namespace":
        plan = Plan(build_root=True, inner=True, readable=readable, scratch=_SCRATCH, root=own, site=site, uid=uid)
        return Launch(_python(interpreter.executable(), parent, plan), _environment(_SCRATCH))
    plan = Plan(build_root=False, inner=True, readable=readable, scratch=_SCRATCH, site=site, uid=uid)
    return Launch(
        (*_bubblewrap(readable), "--", *_python(interpreter.executable(), parent, plan)), _environment(_SCRATCH)
    )


def _bubblewrap(readable: tuple[str, ...]) -> list[str]:
    words = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net"]
    words += ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if os.geteuid() == 0:
        for right in _ROOT_RIGHTS:
            words += ["--cap-add", f"CAP_{right}"]
    else:
        words += ["--unshare-user"]
    # bubblewrap gives folders on the way the modes that they have outside, where only root may pass through /root
    for parent in sorted({str(above) for path in readable for above in PurePath(path).parents} - {"/"}):
        words += ["--dir", parent] if parent not in readable else []
    for path in readable:
        words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", _SCRATCH]
    return [*words, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", "/"]


def _container(kind: str, settings: SandboxSettings) -> Launch:
    readable = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/etc", "/sandbox")
    plan = Plan(build_root=False, inner=True, readable=readable, scratch=_SCRATCH)
    words = [kind, "run", "--rm", "--interactive", "--network", "none", "--read-only", "--user", "65534:65534"]
    words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    words += ["--pids-limit", str(settings.processes + 16), "--memory", f"{settings.memory_mb + 256}m"]
    words += ["--tmpfs", f"{_SCRATCH}:rw,mode=1777,size={settings.scratch_mb}m"]
    words += ["--volume", f"{interpreter.GUEST}:/sandbox/guest:ro"]
    for name, value in _environment(_SCRATCH).items():
        words += ["--env", f"{name}={value}"]
    return Launch((*words, settings.image, *_python("python3", "/sandbox", plan)), dict(os.environ))

"""How much memory of the NVIDIA GPUs is in use: it can stay taken for seconds after a server's processes are gone."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Collection

_QUERY = ("--query-gpu=index,uuid,memory.used", "--format=csv,noheader,nounits")
_SECONDS = 15.0
# What a driver or a display may have taken meanwhile, in MiB.
_TOLERANCE = 512


def memory_in_use(devices: Collection[str] | None) -> dict[str, int] | None:
    """MiB in use by device index; None where there is no ``nvidia-smi``, or it fails.

    Args:
        devices: indices or UUIDs to look at, as CUDA_VISIBLE_DEVICES has them; None for all.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    used: dict[str, int] = {}
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 3 or not fields[2].isdigit():
            continue
        index, uuid, memory = fields
        if devices is None or index in devices or any(uuid.startswith(device) for device in devices):
            used[index] = int(memory)
    return used


def wait_until_freed(before: dict[str, int] | None, devices: Collection[str] | None, seconds: float) -> bool:
    """Waits at most ``seconds`` until no device has notably more in use than ``before``; whether that is so."""
    if not before:
        return True
    deadline = time.monotonic() + seconds
    while True:
        now = memory_in_use(devices)
        if now is None or all(now.get(index, 0) <= used + _TOLERANCE for index, used in before.items()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)

"""Dividing a machine's GPUs among workers. Pure, but for asking nvidia-smi where the environment names no devices."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from specforge.backends.flags import given_flags, integer_flag
from specforge.backends.options import LaunchOptions
from specforge.errors import UsageError

# In the order of precedence; the HIP variable counts within what the ROCR one leaves visible.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_NVIDIA_SMI_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Devices:
    """Some devices, and the environment variable that shows them to a server.

    Attributes:
        ids: indices or UUIDs, as the variable has them; empty for none (CPU).
        variable: the variable's name.
    """

    ids: tuple[str, ...] = ()
    variable: str = _VARIABLES[0]

    @property
    def environment(self) -> dict[str, str]:
        """What to add to a server's environment so that it sees these devices alone; empty where there are none."""
        return {self.variable: ",".join(self.ids)} if self.ids else {}


def nvidia_devices() -> tuple[str, ...]:
    """The indices of the GPUs that ``nvidia-smi`` lists; empty where it doesn't exist or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        done = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=_NVIDIA_SMI_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(re.findall(r"^GPU (\d+):", done.stdout, re.MULTILINE)) if done.returncode == 0 else ()


def visible_devices(
    environment: Mapping[str, str], gpus: str | None, installed: Callable[[], tuple[str, ...]] = nvidia_devices
) -> Devices:
    """The devices that the run may use.

    Args:
        environment: where CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES are looked up.
        gpus: the value of ``--gpus`` (``0,1,2,3``), which overrides them; None where it is not given.
        installed: asked when neither says anything.

    Raises:
        UsageError: ``--gpus`` names no device, or one twice.
    """
    named = next((variable for variable in _VARIABLES if variable in environment), None)
    if gpus is not None:
        ids = tuple(part.strip() for part in gpus.split(","))
        if not all(ids) or len(set(ids)) != len(ids):
            raise UsageError(f"--gpus: {gpus!r} is not a list of devices; expected indices or UUIDs such as 0,1,2,3")
        return Devices(ids, named or _VARIABLES[0])
    if named is None:
        return Devices(installed())
    return Devices(_listed(environment[named]), named)


def _listed(value: str) -> tuple[str, ...]:
    """The devices that a variable's value shows: CUDA stops reading at the first entry that is none, such as -1."""
    ids: list[str] = []
    for part in value.split(","):
        entry = part.strip()
        if not re.match(r"[0-9A-Za-z]", entry) or entry in ids or entry == "NoDevFiles":
            break
        ids.append(entry)
    return tuple(ids)


def devices_per_server(options: LaunchOptions) -> int:
    """How many devices one server takes: tensor × pipeline × data parallel size.

    With ``--enable-dp-attention`` the data-parallel ranks share the tensor-parallel ones.

    Raises:
        UsageError: a size in ``--server-args`` is no positive integer.
    """
    words = options.server_args
    size = 1
    for name, default in (("--tp-size", options.tp_size), ("--pp-size", None), ("--dp-size", None)):
        if name == "--dp-size" and "--enable-dp-attention" in given_flags(words):
            continue
        given = integer_flag(words, name)
        factor = given if given is not None else default if default is not None else 1
        if factor < 1:
            raise UsageError(f"{name} is {factor}; expected a positive integer")
        size *= factor
    return size


def divide(devices: Devices, per_server: int, workers: int) -> Sequence[Devices]:
    """One share for each worker, ``per_server`` neighbouring devices in each; shares without devices on a CPU.

    Raises:
        UsageError: there are more workers than shares.
    """
    if not devices.ids:
        return [devices] * workers
    shares = len(devices.ids) // per_server
    if workers > shares:
        raise UsageError(
            f"-n {workers}: {len(devices.ids)} visible devices make {shares} shares of {per_server} "
            f"(--tp-size times pp and dp sizes); expected at most {shares} workers"
            if shares
            else f"--tp-size: a server of {per_server} devices does not fit into the {len(devices.ids)} visible ones"
        )
    return [
        Devices(devices.ids[start : start + per_server], devices.variable)
        for start in range(0, workers * per_server, per_server)
    ]

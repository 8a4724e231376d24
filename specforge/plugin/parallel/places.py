"""What each worker measures with: its share of the GPUs, or the server that it attaches to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import execnet

from specforge.backends.devices import Devices, devices_per_server, divide, visible_devices
from specforge.backends.flags import given_flags
from specforge.errors import UsageError

if TYPE_CHECKING:
    from specforge.plugin.settings import Settings

WORKER_INPUT = "specforge"
"""Under which name a worker is told its place."""

THIS_MACHINE = ""
"""The name of the controller's own machine among the machines of workers."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the controller tells a worker, as plain values.

    Attributes:
        worker: its name, ``gw0``.
        number, workers: which of all workers it is, and how many there are. A worker that takes a dead one's place has
            its number.
        share, shares: the same among the workers of its machine.
        output_dir: the controller's, absolute, where this worker writes there too; None on another machine, where it
            writes under its own and sends rows along.
        run: the name of the run's folder.
        started: when the run was, ISO 8601.
        kept: the tests (:func:`specforge.plugin.entries.test_of`) whose cells a resumed run keeps; None for a new run.
        options: the harness's options by destination, with what the controller read from a file of ``--matrix`` or a
            run of ``--resume``: xdist hands on the command line alone.
    """

    worker: str
    number: int
    workers: int
    share: int
    shares: int
    output_dir: str | None
    run: str
    started: str
    kept: tuple[str, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def folder_under(self, own: Path) -> Path:
        """The run's folder, given this worker's own output folder."""
        return Path(self.output_dir or own) / self.run

    def plain(self) -> dict[str, Any]:
        """As :class:`Place` takes it again."""
        return asdict(self)


def place_of(config: Any) -> Place | None:
    """What the controller told a session (a ``pytest.Config``); None where it is no worker's."""
    told = getattr(config, "workerinput", {}).get(WORKER_INPUT)
    return Place(**told) if told is not None else None


class Numbers:
    """Hands out the smallest free number of each pool, until its holder gives it back."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], str] = {}

    def take(self, pool: str, holder: str) -> int:
        """A number, from 0."""
        number = 0
        while (pool, number) in self._held:
            number += 1
        self._held[pool, number] = holder
        return number

    def give_back(self, holder: str) -> None:
        """Everything that this holder has."""
        self._held = {key: other for key, other in self._held.items() if other != holder}


def machine_of(spec: Any) -> str:
    """The machine that an execution environment of pytest-xdist (``--tx``, an ``execnet.XSpec``) is on."""
    if getattr(spec, "via", None):
        return f"via {spec.via}"
    if spec.popen:
        return THIS_MACHINE
    socket = getattr(spec, "socket", None)
    return str(spec.ssh or getattr(spec, "vagrant_ssh", None) or (socket and socket.rpartition(":")[0]) or spec)


def machines_of(environments: Sequence[str]) -> list[str]:
    """Each worker's machine, by the values of ``--tx``; ``3*popen`` is three workers."""
    machines: list[str] = []
    for text in environments:
        count, times, spec = text.partition("*")
        several = bool(times) and count.isdigit()
        machines += [machine_of(execnet.XSpec(spec if several else text))] * (int(count) if several else 1)
    return machines


def check_workers(settings: Settings, machines: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuses what can't run, before anything starts.

    Args:
        machines: each worker's; a session without workers is one on this machine.
        environment: this machine's.

    Raises:
        UsageError: there are more workers than servers or shares of the GPUs, or one port for several servers.
    """
    workers = len(machines)
    if settings.launch is None:
        _check_servers(len(settings.endpoints), workers, shared=settings.shared_server)
        return
    if settings.shared_server:
        raise UsageError("--shared-server: each configuration launches its own server; expected --base-url with it")
    alike = max(Counter(machines).values())
    if settings.launch.port is not None and alike > 1:
        raise UsageError(
            f"--port: {settings.launch.port} can't be the port of {alike} servers at once; leave it out for free ones"
        )
    here = machines.count(THIS_MACHINE)
    if here:
        _divide(settings, visible_to(settings, environment), here)


def _check_servers(servers: int, workers: int, *, shared: bool) -> None:
    if workers > servers and not shared:
        raise UsageError(
            f"--base-url: {_count(workers, 'worker')} for {_count(servers, 'server')}; "
            "expected a server for each worker, or --shared-server where they are meant to share"
        )
    if servers > workers:
        raise UsageError(
            f"--base-url: {_count(servers, 'server')} for {_count(workers, 'worker')}; expected -n {servers}"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def visible_to(settings: Settings, environment: Mapping[str, str]) -> Devices:
    """The devices of a machine that servers launched there may use; none for servers that compute on the CPU.

    Raises:
        UsageError: ``--gpus`` is no list of devices.
    """
    if settings.launch is None or settings.backend == "embedded":
        return Devices()
    if given_flags(settings.launch.server_args).get("--device") == "cpu":
        return Devices()
    return visible_devices(environment, settings.gpus)


def devices_of(settings: Settings, place: Place | None, environment: Mapping[str, str]) -> Devices:
    """The devices that a worker's servers are shown.

    Without workers that is what ``--gpus`` names, and without that nothing is hidden from them.

    Raises:
        UsageError: a server doesn't fit.
    """
    if place is None and settings.gpus is None:
        return Devices()
    devices = visible_to(settings, environment)
    shares = _divide(settings, devices, 1 if place is None else place.shares)
    return devices if place is None else shares[place.share]


def _divide(settings: Settings, devices: Devices, workers: int) -> Sequence[Devices]:
    return divide(devices, devices_per_server(settings.launch) if settings.launch is not None else 1, workers)


def describe_workers(settings: Settings, machines: Sequence[str], environment: Mapping[str, str]) -> str:
    """How many workers there are, and what each of them has, in one line."""
    workers = _count(len(machines), "worker")
    if settings.launch is None:
        return f"{workers} on {_count(len(settings.endpoints), 'server')}"
    here = machines.count(THIS_MACHINE)
    if here != len(machines):
        return f"{workers} on {_count(len(set(machines)), 'machine')}"
    devices = visible_to(settings, environment)
    if not devices.ids:
        return f"{workers} on this machine's CPU: the times of servers that run at once are not comparable"
    shares = " | ".join(",".join(share.ids) for share in _divide(settings, devices, here))
    return f"{workers}, devices {shares}"


def sharing_warnings(settings: Settings, place: Place, devices: Devices) -> list[str]:
    """Why the times of workers that measure at once can't be compared."""
    if settings.launch is None:
        sharers = -(-place.workers // len(settings.endpoints))
        return [f"--shared-server: {sharers} workers load one server at once"] if sharers > 1 else []
    if devices.ids or place.shares == 1:
        return []
    return [f"{place.shares} servers at once on one machine's CPU: their times are not comparable"]

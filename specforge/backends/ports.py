"""Ports for servers: free ones, and never one for two servers of this machine's harnesses."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from specforge.errors import ServerError, UsageError

# Below the range from which systems take the ports of outgoing connections, so that no client grabs one between its
# choice and the server's start.
_FIRST, _LAST = 30000, 32767
# Coprime to the range's size, so that the walk visits every port; neighbours stay free, as SGLang uses some itself.
_STRIDE = 11


class PortClaim:
    """A port that is this process's for as long as it holds the claim; other harnesses pass it over.

    The claim is a locked file, which the system unlocks however the process ends.
    """

    def __init__(self, host: str, port: int, lock: IO[bytes]) -> None:
        self.host = host
        self.port = port
        self._lock = lock

    def release(self) -> None:
        """Gives the port up."""
        self._lock.close()


def claim_port(host: str, port: int | None) -> PortClaim:
    """Claims ``port``, or a free one when it is None.

    Raises:
        UsageError: the port is taken, by whatever server or by another harness.
        ServerError: no free port was found.
    """
    if port is not None:
        if not is_free(host, port):
            raise UsageError(
                f"--port: {port} on {host} is taken by another program; expected a free port "
                "(to measure a server that runs there: --skip-launch-server)"
            )
        claim = _try_claim(host, port)
        if claim is None:
            raise UsageError(
                f"--port: {port} is claimed by another run of the harness on this machine; expected a free port"
            )
        return claim
    for candidate in _candidates():
        if is_free(host, candidate) and (claim := _try_claim(host, candidate)) is not None:
            return claim
    raise ServerError(f"no free port between {_FIRST} and {_LAST} on {host}; name one with --port")


def connect_host(host: str) -> str:
    """The address at which a server that binds ``host`` is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)


def is_free(host: str, port: int) -> bool:
    """Whether nobody listens on ``port`` of ``host``.

    Raises:
        UsageError: the host's name means nothing here.
    """
    with contextlib.suppress(OSError), socket.create_connection((connect_host(host), port), timeout=1.0):
        return False
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"--host: {host!r} is no address of a machine: {error.strerror or error}") from None
    family, kind, protocol, _, address = found[0]
    try:
        with socket.socket(family, kind, protocol) as probe:
            # As servers do: without it, connections that were closed a moment ago would count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        # What else may be wrong with the address, the server will say better.
        return error.errno != errno.EADDRINUSE
    return True


def wait_until_free(host: str, port: int, seconds: float) -> bool:
    """Waits at most ``seconds`` for the port to be free; whether it is."""
    deadline = time.monotonic() + seconds
    while not is_free(host, port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _candidates() -> Iterator[int]:
    size = _LAST - _FIRST + 1
    start = os.getpid() % size
    return (_FIRST + (start + step * _STRIDE) % size for step in range(size))


def _try_claim(host: str, port: int) -> PortClaim | None:
    folder = Path(tempfile.gettempdir()) / f"specforge-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = (folder / str(port)).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return PortClaim(host, port, lock)

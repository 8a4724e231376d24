"""The one interface that all backends share: start, where it is, what it says about itself, stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from specforge.client import Endpoint
from specforge.matrix import SpecConfig

Progress = Callable[[float, str], None]
"""Called while a server starts, with the seconds since then and the last line of its log ('' before there is one)."""


@dataclass(frozen=True, kw_only=True)
class About:
    """What a server says about itself, and what is known about how it came to be.

    Attributes:
        server_info: its resolved settings as ``/server_info`` gives them; None where it can't be asked.
        model_info: likewise for ``/model_info``.
        command: the command line it was launched with, secrets starred out; empty for one that was attached to.
        log: the file its output goes to; None for one that was attached to.
        started_in: seconds from the launch to readiness; None for one that was attached to.
        notes: what the user should be told once, a line each.
    """

    server_info: Mapping[str, Any] | None
    model_info: Mapping[str, Any] | None
    command: tuple[str, ...] = ()
    log: Path | None = None
    started_in: float | None = None
    notes: tuple[str, ...] = ()


def scrubbed(said: Any, secret: str | None) -> Any:
    """JSON data from a server without the API key, which SGLang repeats among its arguments."""
    if not secret:
        return said
    if isinstance(said, str):
        return said.replace(secret, "***")
    if isinstance(said, Mapping):
        return {name: scrubbed(value, secret) for name, value in said.items()}
    if isinstance(said, list):
        return [scrubbed(value, secret) for value in said]
    return said


class Server(ABC):
    """A server that is ready, until it is stopped; also a context manager that stops it."""

    def __init__(self, endpoint: Endpoint, about: About) -> None:
        self.endpoint = endpoint
        self.about = about

    @property
    def base_url(self) -> str:
        """Its address, without a slash at the end."""
        return self.endpoint.base_url

    @abstractmethod
    def check_alive(self) -> None:
        """Does nothing while the server lives; cheap enough to be called often, and from any thread.

        Raises:
            ServerError: it is gone; the text has the last lines of its log.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ends a server that was launched, and leaves alone one that was attached to. Again does nothing."""

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Backend(ABC):
    """Makes servers: one at a time, one for each configuration."""

    @abstractmethod
    def start(self, config: SpecConfig, on_progress: Progress | None = None) -> Server:
        """A server for this configuration, ready and checked to be what was asked for.

        Raises:
            UsageError: a flag is wrong, or its port is taken.
            ServerError: it died, is not ready in time, or is not what was asked for.
        """

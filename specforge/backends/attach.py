"""Measures a server that runs already. Nothing of it is changed, and it is left running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specforge.backends.base import About, Backend, Progress, Server, scrubbed
from specforge.client import ControlClient, Endpoint
from specforge.errors import ServerError
from specforge.matrix import SpecConfig

_HEALTH_SECONDS = 60.0


class Attacher(Backend):
    """Attaches to one server; what it runs is its own affair, and is read, not asked for."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._said: set[str] = set()

    def start(self, config: SpecConfig, on_progress: Progress | None = None) -> Server:  # noqa: ARG002
        """See :meth:`Backend.start`: checks that the server works, and reads what it says about itself.

        A front that lacks ``/server_info`` or ``/model_info`` leaves the one or the other None, which a note says at
        the first start alone.
        """
        control = ControlClient(self.endpoint)
        try:
            ailment = None if control.ready() else control.ailment(_HEALTH_SECONDS)
            if ailment is not None:
                raise ServerError(
                    f"{self.endpoint.base_url} does not answer as a server that is ready ({ailment}); "
                    "expected a running SGLang there (--base-url, or --host and --port)"
                )
            info, model = control.server_info(), control.model_info()
            # A router need not have /health; SGLang itself has, and says there that no token can be made.
            if info is not None and not control.health(_HEALTH_SECONDS):
                raise ServerError(
                    f"{self.endpoint.url('/health')} says that the server can't produce a token, although it is running"
                )
        finally:
            control.close()
        notes = tuple(note for note in self._gaps(info, model) if note not in self._said)
        self._said.update(notes)
        info = scrubbed(info, self.endpoint.api_key)
        return AttachedServer(self.endpoint, About(server_info=info, model_info=model, notes=notes))

    def _gaps(self, info: Mapping[str, Any] | None, model: Mapping[str, Any] | None) -> list[str]:
        gaps = []
        if info is None:
            gaps.append(
                f"{self.endpoint.base_url} serves no /server_info: its version, speculative settings and capacity are "
                "recorded as unknown"
            )
        if model is None:
            gaps.append(f"{self.endpoint.base_url} serves no /model_info: what its model takes is recorded as unknown")
        return gaps


class AttachedServer(Server):
    """A server that someone else started and will end."""

    def check_alive(self) -> None:
        """See :meth:`Server.check_alive`. There is no process to look at, so it is asked over HTTP."""
        control = ControlClient(self.endpoint)
        try:
            if not control.ready():
                raise ServerError(f"{self.endpoint.base_url} no longer answers as a server that is ready")
        finally:
            control.close()

    def stop(self) -> None:
        """See :meth:`Server.stop`: it is left running."""

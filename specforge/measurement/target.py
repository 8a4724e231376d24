"""A server that is being measured: its capabilities, probed once, and the prompts prepared for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specforge.client.control import ControlClient
from specforge.client.endpoint import Endpoint
from specforge.client.measured import MeasuredClient, RequestFailure
from specforge.client.probe import Capabilities, probe
from specforge.client.sampling import Sampling
from specforge.datasets.model import Prompt
from specforge.errors import ServerError
from specforge.load.blocking import run_blocking
from specforge.load.prepare import PreparedPrompt, Tokenizer, prepare
from specforge.load.rounds import Connection
from specforge.load.template import local_tokenizer
from specforge.load.watch import Watch

_TEMPLATE_PROBE = (
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": "a"},
    {"role": "user", "content": "v"},
)


class Target:
    """One server, ready to be measured.

    Args:
        endpoint: where it is.
        check_alive: raises ServerError when its process has ended.
        server_info: what ``/server_info`` says; None where it isn't served.
        request_timeout: limit for one request, s.
        stream: whether answers are streamed.
        model_path: the model's folder or Hub id, for servers that can't render its template.

    Raises:
        ServerError: nothing there can be measured.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        check_alive: Callable[[], None],
        server_info: Mapping[str, Any] | None,
        *,
        request_timeout: float,
        stream: bool = False,
        model_path: str | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.server_info = server_info
        self.control = ControlClient(endpoint)
        self.capabilities: Capabilities = probe(self.control, stream=stream)
        self.model_path = self.capabilities.model_path or model_path
        self.check_alive = check_alive
        self._request_timeout = request_timeout
        self._local: Tokenizer | None = None
        if self.capabilities.needs_template:
            self._local = local_tokenizer(model_path or self.capabilities.model_path)
        self.can_flush = self.control.flush_cache()
        self.notes: list[str] = list(self.capabilities.notes)
        if not self.can_flush:
            self.notes.append("the server has no /flush_cache: prompts may be answered from its cache")
        self.cells_measured = 0

    def connection(self) -> Connection:
        """How the load generator reaches it."""
        return Connection(
            self.control,
            self.capabilities.wire,
            self._request_timeout,
            Watch(self.endpoint, self.check_alive),
            self.capabilities.can_tokenize,
            self._local,
        )

    def prepare(
        self, prompts: Sequence[Prompt], sampling: Sampling, cache: dict[str, list[PreparedPrompt]], key: str
    ) -> list[PreparedPrompt]:
        """Counts and hashes prompts; once a run for each model and draw, since ids don't depend on speculation.

        Raises:
            ServerError: the server went away meanwhile.
        """
        key = f"{self.model_path}|{key}|{sorted(sampling.template_kwargs.items())}"
        if key not in cache:
            connection = self.connection()

            async def main() -> list[PreparedPrompt]:
                client = MeasuredClient(self.endpoint, connection.wire, self._request_timeout)
                try:
                    tokenize = connection.tokenizer_over(client, sampling)
                    return await connection.watch.during(
                        prepare(prompts, tokenize, has_images=self.capabilities.has_images)
                    )
                finally:
                    await client.close()

            try:
                cache[key] = run_blocking(main)
            except RequestFailure as failure:
                self.check_alive()
                raise ServerError(f"the prompts could not be tokenized: {failure}") from failure
        return cache[key]

    def template_hash(self, sampling: Sampling) -> str | None:
        """Hash of a fixed conversation's token ids: differs where model template or vocabulary do."""
        if not self.capabilities.can_tokenize:
            return None
        ids = self.control.tokenize(_TEMPLATE_PROBE, sampling.template_kwargs)
        if ids is None:  # some templates take no system message
            ids = self.control.tokenize(_TEMPLATE_PROBE[1:], sampling.template_kwargs)
        return None if ids is None else hashlib.sha256(repr(ids).encode()).hexdigest()[:16]

    def close(self) -> None:
        """Drops its connections; the server itself is its backend's to stop."""
        self.control.close()

"""The bodies of the measured requests, by route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from specforge.client.sampling import Sampling


class Route(Enum):
    """Which route carries the measured requests."""

    CHAT = "/v1/chat/completions"
    GENERATE = "/generate"


@dataclass(frozen=True, slots=True)
class Wire:
    """How a server is asked, as the probe found it.

    Attributes:
        route: the route of the measured requests.
        stream: whether answers are streamed.
        has_meta_info: whether chat completions carry ``meta_info`` and token ids (else the fields are not sent).
        model: the name that the server goes by, sent with chat completions.
    """

    route: Route
    stream: bool = False
    has_meta_info: bool = True
    model: str = "default"

    def body(
        self,
        messages: Sequence[Mapping[str, Any]],
        input_ids: Sequence[int] | None,
        sampling: Sampling,
        max_new_tokens: int,
        round_index: int = 0,
    ) -> bytes:
        """One request's body as JSON bytes, still without its id (see :func:`with_request_id`).

        ``input_ids`` are needed by :attr:`Route.GENERATE` and ignored by chat.
        """
        body: dict[str, Any]
        if self.route is Route.GENERATE:
            if input_ids is None:
                raise ValueError("/generate needs the prompt's token ids")
            body = sampling.generate_fields(max_new_tokens, round_index)
            body["input_ids"] = list(input_ids)
            if self.stream:
                body["stream"] = True
        else:
            body = sampling.chat_fields(max_new_tokens, round_index)
            body["model"] = self.model
            body["messages"] = list(messages)
            if self.stream:
                body["stream"] = True
                body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
                body["return_spec_tokens_details"] = True
            elif self.has_meta_info:
                body["return_meta_info"] = True
                body["return_token_ids"] = True
        return orjson.dumps(body)


def with_request_id(body: bytes, request_id: str) -> bytes:
    """The body with ``rid``, by which the server can be told to abort it. Cheap, since it runs inside the window."""
    return b'%s,"rid":"%s"}' % (body[:-1], request_id.encode())

"""Asks a judge model over any OpenAI-compatible endpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from specforge.client.endpoint import Endpoint
from specforge.errors import RequestError, UsageError

_RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
_PAUSES_S = (1.0, 4.0, 15.0)


class JudgeClient:
    """A judge's endpoint.

    Args:
        base_url: as ``--judge-base-url`` has it, with or without ``/v1``.
        model: the judge's model name there.
        api_key: its key; None for none.
        pauses_s: waits before each retry.

    Raises:
        UsageError: ``base_url`` is no URL.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        pauses_s: Sequence[float] = _PAUSES_S,
    ) -> None:
        try:
            endpoint = Endpoint.parse(base_url, api_key)
        except UsageError as error:
            raise UsageError(str(error).replace("--base-url", "--judge-base-url", 1)) from None
        self._endpoint = endpoint
        self._model = model
        self._timeout_s = timeout_s
        self._pauses_s = tuple(pauses_s)

    def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The judge's reply to these messages, at temperature 0 where it takes one.

        Raises:
            RequestError: it can't be reached or refuses, after the retries.
        """
        body: dict[str, Any] = {"model": self._model, "messages": [dict(m) for m in messages], "temperature": 0}
        pauses = iter(self._pauses_s)
        while True:
            status, text, reply = self._post(body)
            if reply is not None:
                return reply
            if status == 400 and "temperature" in text and "temperature" in body:
                del body["temperature"]  # some reasoning models refuse any
                continue
            pause = next(pauses, None)
            if pause is None or (status and status not in _RETRIED):
                raise RequestError(
                    f"--judge-base-url: {self._endpoint.base_url} answered {status or 'nothing'}: {text}"
                )
            time.sleep(pause)

    def _post(self, body: Mapping[str, Any]) -> tuple[int, str, str | None]:
        """Status (0 for none), the error's text, and the reply where there is one."""
        try:
            response = requests.post(
                self._endpoint.url("/v1/chat/completions"),
                json=body,
                headers=self._endpoint.headers(),
                timeout=self._timeout_s,
            )
        except requests.RequestException as error:
            return 0, type(error).__name__, None
        if response.status_code != 200:
            return response.status_code, " ".join(response.text.split())[:300], None
        try:
            return 200, "", str(response.json()["choices"][0]["message"]["content"] or "")
        except (ValueError, LookupError, TypeError):
            return 200, f"no chat completion: {' '.join(response.text.split())[:200]}", None

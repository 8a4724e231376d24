"""Control calls: everything that is asked of a server outside the measured window.

Each call is short, synchronous and rare, so ``requests`` serves them; the measured requests go
through :mod:`specforge.client.measured`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from specforge.client.endpoint import Endpoint
from specforge.errors import ServerError

_SHORT = 10.0
_LONG = 120.0
_NO_SUCH_ROUTE = frozenset({404, 405, 501})


class ControlClient:
    """SGLang's control routes. A route that the server lacks gives None; a server that is not there raises."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._session = requests.Session()
        # A proxy named in the environment must not stand between a benchmark and its server.
        self._session.trust_env = False
        self._session.headers.update(endpoint.headers())

    def close(self) -> None:
        """Drops the connections."""
        self._session.close()

    def ready(self, timeout: float = 5.0) -> bool:
        """Whether the server says that it lives, without making it work.

        ``/ready`` is a flag; a server too old to know it is asked for its list of models instead.
        """
        try:
            status = self._session.get(self.endpoint.url("/ready"), timeout=timeout).status_code
            if status in _NO_SUCH_ROUTE:
                status = self._session.get(self.endpoint.url("/v1/models"), timeout=timeout).status_code
        except requests.RequestException:
            return False
        return status == 200

    def health(self, timeout: float = 60.0) -> bool:
        """Whether the server can produce a token. It runs a request: never ask inside a measured window."""
        return self.ailment(timeout) is None

    def ailment(self, timeout: float = 60.0) -> str | None:
        """Why :meth:`health` is False: what came back, or what kept it from coming back; None for a healthy server."""
        try:
            status = self._session.get(self.endpoint.url("/health"), timeout=timeout).status_code
        except requests.RequestException as error:
            return _root(error)
        return None if status == 200 else f"/health answered {status}"

    def server_info(self) -> dict[str, Any] | None:
        """The server's resolved settings; None where neither route is served (a router, another engine)."""
        for path in ("/server_info", "/get_server_info"):
            info = self._get_object(path)
            if info is not None:
                return info
        return None

    def model_info(self) -> dict[str, Any] | None:
        """What the server says about its model (``model_path``, ``has_image_understanding``); None if it won't."""
        return self._get_object("/model_info") or self._get_object("/get_model_info")

    def models(self) -> list[dict[str, Any]]:
        """The cards of ``/v1/models`` (``id``, ``max_model_len``); empty where the route is not served."""
        data = (self._get_object("/v1/models") or {}).get("data")
        return [card for card in data if isinstance(card, dict)] if isinstance(data, list) else []

    def flush_cache(self, patience: float = 30.0) -> bool:
        """Empties the prefix cache; False where the server has no such route.

        A flush right after a response is refused while the server still counts the request as running,
        so refusals are retried for ``patience`` seconds.

        Raises:
            ServerError: it was refused all that time, or the server is gone.
        """
        deadline = time.monotonic() + patience
        pause = 0.02
        while True:
            answer = self._request("POST", "/flush_cache?timeout=5", _SHORT + 5)
            if answer.status_code == 200:
                return True
            if answer.status_code in _NO_SUCH_ROUTE:
                return False
            if time.monotonic() + pause > deadline:
                raise ServerError(
                    f"the server refused to flush its cache for {patience:.0f} s "
                    f"(POST /flush_cache answered {answer.status_code}: {_excerpt(answer)})"
                )
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def tokenize(
        self, messages: Sequence[Mapping[str, Any]], template_kwargs: Mapping[str, Any] | None = None
    ) -> list[int] | None:
        """The token ids that a chat completion of these messages would have; None where it can't be asked."""
        body: dict[str, Any] = {"messages": list(messages)}
        if template_kwargs:
            body["chat_template_kwargs"] = dict(template_kwargs)
        answer = self._request("POST", "/v1/tokenize", _LONG, json=body)
        if answer.status_code in _NO_SUCH_ROUTE or answer.status_code == 400:
            return None
        tokens = self._object(answer, "/v1/tokenize").get("tokens")
        if isinstance(tokens, list) and all(isinstance(token, int) for token in tokens):
            return tokens
        return None

    def post(self, path: str, body: Mapping[str, Any], timeout: float = _LONG) -> tuple[int, dict[str, Any]]:
        """Posts JSON and gives the status with the object that came back (empty where it was none)."""
        answer = self._request("POST", path, timeout, json=body)
        try:
            data = answer.json()
        except ValueError:
            data = {}
        return answer.status_code, data if isinstance(data, dict) else {}

    def _get_object(self, path: str) -> dict[str, Any] | None:
        answer = self._request("GET", path, _SHORT + 20)
        if answer.status_code in _NO_SUCH_ROUTE:
            return None
        return self._object(answer, path)

    def _object(self, answer: requests.Response, path: str) -> dict[str, Any]:
        if answer.status_code in (401, 403):
            raise ServerError(
                f"{self.endpoint.url(path)} answered {answer.status_code}: the server wants a key (--api-key)"
            )
        if answer.status_code >= 500:
            raise ServerError(f"{self.endpoint.url(path)} answered {answer.status_code}: {_excerpt(answer)}")
        try:
            data = answer.json()
        except ValueError:
            data = None
        if answer.status_code != 200 or not isinstance(data, dict):
            return {}
        return data

    def _request(self, method: str, path: str, timeout: float, json: Any = None) -> requests.Response:
        try:
            return self._session.request(method, self.endpoint.url(path), timeout=timeout, json=json)
        except requests.ConnectionError as error:
            raise ServerError(f"no server answers at {self.endpoint.base_url} ({_root(error)})") from error
        except requests.Timeout as error:
            raise ServerError(f"{self.endpoint.url(path)} did not answer within {timeout:.0f} s") from error
        except requests.RequestException as error:
            raise ServerError(f"{self.endpoint.url(path)}: {_root(error)}") from error


def _excerpt(answer: requests.Response, limit: int = 200) -> str:
    return " ".join(answer.text.split())[:limit] or "no text"


def _root(error: BaseException) -> str:
    """The innermost cause's words: what the operating system said, without the wrappings."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return " ".join(str(error).split()) or type(error).__name__

"""The log of a scripted server: everything that was asked and every raw response."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from aiohttp import web


class Log:
    """Every request and its raw response, in memory and, where a path is given, as JSON lines."""

    def __init__(self, path: Path | None, *, keep: bool) -> None:
        self.entries: list[dict[str, Any]] = []
        self.in_flight = self.max_in_flight = self.generations = 0
        self._keep = keep
        self._file: BinaryIO | None = path.open("ab") if path else None

    def begin_generation(self, exchange: Exchange) -> None:
        """Numbers a request that asks for tokens, and counts it as in flight."""
        self.generations += 1
        exchange.ordinal = self.generations
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def end(self, exchange: Exchange, status: int | None) -> None:
        """Counts a request as answered, once; called before its client can know that it is."""
        if exchange.is_over:
            return
        exchange.is_over = True
        if exchange.ordinal is not None:
            self.in_flight -= 1
        if self._keep:
            self._add(exchange.entry(status))

    def _add(self, entry: Mapping[str, Any]) -> None:
        self.entries.append(dict(entry))
        if self._file:
            self._file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file:
            self._file.close()


class Exchange:
    """One request being answered, and what its log entry will say."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.request, self.body = request, body
        self.started = time.time()
        self.ordinal: int | None = None
        self.fault: str | None = None
        self.sent = b""
        self.parsed: Any = None
        self.is_over = False

    @property
    def path(self) -> str:
        return self.request.path

    def entry(self, status: int | None) -> dict[str, Any]:
        """The log entry; ``status`` is None where the connection ended without one."""
        return {
            "ordinal": self.ordinal,
            "method": self.request.method,
            "path": self.path,
            "query": self.request.query_string,
            "started": self.started,
            "ended": time.time(),
            "status": status,
            "fault": self.fault,
            "request": self.parsed if self.parsed is not None else self.body.decode("utf-8", "replace"),
            "response": self.sent.decode("utf-8", "replace"),
        }

"""The loads that the clients are compared under, each with the server's script."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.scripted import Pace, Replies, Script, Speculation

TOKENS = 32
CHUNKS = 256


@dataclass(frozen=True)
class ClientLoad:
    """One load: what the server does, and how many requests are in flight.

    ``script`` None is streaming, from ``streamer.py``: a scripted server would be slower than its clients there.
    ``requests`` is how many one run sends; ``limit`` the rate that the pace allows, requests a second.
    """

    name: str
    script: Script | None
    concurrency: int
    requests: int

    @property
    def stream(self) -> bool:
        return self.script is None

    @property
    def limit(self) -> float | None:
        wait = 0.0 if self.script is None else self.script.pace.per_request
        return self.concurrency / wait if wait else None


def _script(pace: Pace, tokens: int) -> Script:
    return Script(
        speculation=Speculation(),
        replies=Replies(tokens=(tokens, tokens), alike=True),
        pace=pace,
        keep_log=False,
    )


LOADS = (
    ClientLoad("at once, 64 in flight", _script(Pace(), TOKENS), 64, 6000),
    ClientLoad("after 200 ms, 256 in flight", _script(Pace(per_request=0.2), TOKENS), 256, 6000),
    ClientLoad("after 200 ms, 1,000 in flight", _script(Pace(per_request=0.2), TOKENS), 1000, 12000),
    ClientLoad(f"64 streams of {CHUNKS} chunks", None, 64, 1024),
)

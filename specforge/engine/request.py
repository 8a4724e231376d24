"""A request on its way through the engine."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from specforge.engine.drafts.first_draft import FirstDraft
from specforge.engine.sampling import SamplingParams
from specforge.engine.stopping import StopCheck


@dataclass(frozen=True)
class FinishReason:
    """Why a request ended, in SGLang's terms."""

    kind: str
    """stop | length | abort."""
    detail: dict[str, Any]
    """`matched` (a token id or a stop string), `length`, or `message` and `status_code`."""

    def as_json(self) -> dict[str, Any]:
        """The `finish_reason` of `meta_info`."""
        return {"type": self.kind, **self.detail}


@dataclass
class SpecCounts:
    """What verification did to one request."""

    verify_steps: int = 0
    correct_drafts: int = 0
    histogram: list[int] = field(default_factory=list)
    """histogram[i] = steps that accepted i drafts."""

    def record(self, correct: int) -> None:
        """Count one verification step; drafts later cut off by a limit count too."""
        self.verify_steps += 1
        self.correct_drafts += correct
        self.histogram.extend([0] * (correct + 1 - len(self.histogram)))
        self.histogram[correct] += 1


@dataclass
class Timeline:
    """Moments of a request: `time.perf_counter()` seconds; 0 where it has not come to that."""

    received: float = field(default_factory=time.perf_counter)
    received_at: float = field(default_factory=time.time)
    """The same moment on the wall clock."""
    started: float = 0.0
    first_token: float = 0.0
    finished: float = 0.0

    def on_wall(self, moment: float) -> float:
        """A moment as seconds since the epoch."""
        return self.received_at + moment - self.received


@dataclass(eq=False)
class Request:
    """Tokens of one request and all that is known about it. The engine's thread alone changes it."""

    rid: str
    tokens: list[int]
    """Prompt and answer so far. The last one's cell is not filled yet while the request runs."""
    prompt_length: int
    params: SamplingParams
    limit: int
    """Most new tokens: what was asked for, or what the context leaves."""
    seed: int
    """Of the random numbers that sampling uses."""
    stop: StopCheck
    slot: int = -1
    cached: int = 0
    """Prompt tokens taken from the prefix cache."""
    first_draft: FirstDraft | None = None
    finish: FinishReason | None = None
    spec: SpecCounts = field(default_factory=SpecCounts)
    times: Timeline = field(default_factory=Timeline)
    output_counts: Counter[int] = field(default_factory=Counter)
    """How often each token was generated; kept only where a penalty needs it."""

    @property
    def output_length(self) -> int:
        """Tokens generated."""
        return len(self.tokens) - self.prompt_length

    @property
    def outputs(self) -> list[int]:
        """The tokens generated."""
        return self.tokens[self.prompt_length :]

    @property
    def filled(self) -> int:
        """Cells of the target filled while decoding: all but the last token's."""
        return len(self.tokens) - 1

"""The script of a scripted server: plain values, the same in Python and in a JSON file.

    Script(pace=Pace(per_request=0.25), faults=(Fault("status", status=503, requests=(3,)),))

is, as JSON, ``{"pace": {"per_request": 0.25}, "faults": [{"what": "status", "status": 503, "requests": [3]}]}``.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ALWAYS = 10**9
"""A count that no test reaches."""

FaultKind = Literal["status", "malformed", "hang", "drop", "refuse", "exit", "slow"]


@dataclass(frozen=True)
class Speculation:
    """What the server drafts with; ``num_steps`` 0 is an algorithm without steps (NGRAM)."""

    algorithm: str = "EAGLE3"
    num_steps: int = 3
    topk: int = 1
    num_draft_tokens: int = 4
    draft_model_path: str | None = None

    @property
    def most_accepted(self) -> int:
        """The largest number of drafts that one verification step can accept."""
        return self.num_steps or self.num_draft_tokens - 1


@dataclass(frozen=True)
class Answer:
    """What is answered to every prompt that contains ``containing`` (before any reply made up from the prompt)."""

    containing: str
    text: str
    reasoning: str = ""


@dataclass(frozen=True)
class Drift:
    """A speculative server's output differs from the plain one's from token ``position`` on, for matching prompts."""

    containing: str
    position: int


@dataclass(frozen=True)
class Replies:
    """How an answer follows from its prompt. The same prompt always gets the same answer.

    ``tokens`` bounds the length of a made-up answer, its end token included. ``acceptance`` is the chance that a draft
    token is right (it varies by prompt around this). ``unverified_share`` of the prompts get no speculative
    fields, as answers that were never verified do. ``alike`` answers every prompt as it would the empty one, at
    less cost (load tests).
    """

    seed: int = 0
    tokens: tuple[int, int] = (8, 48)
    acceptance: float = 0.6
    unverified_share: float = 0.0
    answers: tuple[Answer, ...] = ()
    drifts: tuple[Drift, ...] = ()
    alike: bool = False


@dataclass(frozen=True)
class Pace:
    """Seconds: ``per_request`` until the first token, ``per_step`` for each decoding or verification step after it.

    Zero is "at once". The latencies in ``meta_info`` are computed from these, not measured.
    """

    per_request: float = 0.0
    per_step: float = 0.0


@dataclass(frozen=True)
class Wire:
    """Which SGLang this is: what it knows, what it says about itself."""

    version: str = "0.5.23"
    meta_info: bool = True
    """False: ``return_meta_info`` is ignored, as before it existed."""
    token_ids: bool = True
    """False: ``return_token_ids`` is ignored."""
    refuses: tuple[str, ...] = ()
    """Request fields answered with 400."""
    missing: tuple[str, ...] = ()
    """Paths answered with 404, as by a router in front that lacks them."""
    older_names: bool = False
    """The names that speculative fields had before 0.5.23."""
    metrics: bool = True
    """``--enable-metrics``: ``first_token_latency`` and its like are reported."""
    images: bool = False
    api_key: str | None = None
    context_length: int = 32768
    max_running_requests: int = 64
    prefix_cache: bool = False
    """True: a prompt seen since the last flush counts as cached, all but its last token."""
    server_info: Mapping[str, Any] = field(default_factory=dict)
    """Laid over what ``/server_info``, ``/model_info`` and ``/v1/models`` say (another model, wrong settings)."""
    flush_refusals: int = 0
    """The first so many flushes are answered with 400."""


@dataclass(frozen=True)
class Fault:
    """One kind of trouble and the generation requests it meets: all of them, unless restricted.

    - ``status``: an error with that HTTP status (``retry_after`` seconds in its header, where given)
    - ``malformed``: 200 with a body that is no JSON
    - ``hang``: no answer until the connection closes
    - ``drop``: the connection ends in the middle of the body; ``refuse``: before its first byte
    - ``exit``: the server dies, with exit status ``status``
    - ``slow``: the answer takes ``seconds`` longer

    ``requests`` are ordinals counted from 1 over all generation requests, warm-up included; ``after`` means every
    request later than that one; ``containing`` is looked for in the prompt. ``times`` bounds how often it strikes.
    """

    what: FaultKind
    status: int = 500
    seconds: float = 0.0
    retry_after: float | None = None
    requests: tuple[int, ...] = ()
    after: int = 0
    containing: str = ""
    times: int = ALWAYS

    def meets(self, ordinal: int, prompt: str) -> bool:
        """Whether the ``ordinal``-th generation request, with this prompt, is one of those restricted to."""
        if self.requests and ordinal not in self.requests:
            return False
        return ordinal > self.after and self.containing in prompt


@dataclass(frozen=True)
class Start:
    """How the process starts and stops. Only a server started as a program has all of it.

    It binds its port after ``bind_after`` seconds and answers ``/health`` with 503 for ``ready_after`` more.
    ``exit_code`` ends it at once instead. ``log_lines`` go to its log first. ``children`` are processes of its own
    that outlive it unless its process group is ended.
    """

    bind_after: float = 0.0
    ready_after: float = 0.0
    exit_code: int | None = None
    log_lines: tuple[str, ...] = ()
    children: int = 0
    ignores_sigterm: bool = False


@dataclass(frozen=True)
class Script:
    """Everything a scripted server does."""

    model: str = "scripted/model"
    speculation: Speculation | None = None
    replies: Replies = Replies()
    pace: Pace = Pace()
    wire: Wire = Wire()
    faults: tuple[Fault, ...] = ()
    start: Start = Start()
    keep_log: bool = True
    """False: requests are counted but not kept (load tests)."""


@dataclass(frozen=True)
class Scene:
    """A script and the command-line flags under which a started server follows it."""

    script: Script
    when: Mapping[str, str] = field(default_factory=dict)

    def applies(self, flags: Mapping[str, str]) -> bool:
        """Whether the server was started with each of these flags at these values."""
        return all(flags.get(name) == value for name, value in self.when.items())


def dump(scenes: Script | Sequence[Scene], path: Path) -> Path:
    """Writes a script, or scenes of which the first that applies is followed, and returns the path."""
    listed = [Scene(scenes)] if isinstance(scenes, Script) else scenes
    path.write_text(json.dumps([dataclasses.asdict(scene) for scene in listed], indent=1), encoding="utf-8")
    return path


def load(path: Path) -> list[Scene]:
    """Reads what ``dump`` wrote; a file with one script as an object is read too.

    Raises ValueError for a name that no script has.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(data, dict):
        return [Scene(_value(Script, data))]
    return [_value(Scene, scene) for scene in data]


def _value(kind: Any, data: Any) -> Any:
    """``data`` as an instance of ``kind``: a script's dataclass, a tuple, an optional or a plain type."""
    if dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind)
        unknown = set(data) - set(types)
        if unknown:
            raise ValueError(f"a script's {kind} has no entry {', '.join(sorted(unknown))}")
        build: Any = kind
        return build(**{name: _value(types[name], value) for name, value in data.items()})
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return tuple(_value(arguments[0], item) for item in data)
    if data is not None and type(None) in arguments:
        return _value(arguments[0], data)
    return data

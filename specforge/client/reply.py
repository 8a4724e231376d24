"""What came back for one request, whichever route and SGLang version it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The names that SGLang's versions gave to the same counts, newest first.
_CORRECT = ("spec_num_correct_drafts", "spec_accept_token_num", "spec_accepted_drafts")
_PROPOSED = ("spec_num_proposed_drafts", "spec_draft_token_num", "spec_proposed_drafts")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


@dataclass(slots=True)
class SpecCounts:
    """A request's speculative counts as the server reports them; None where it doesn't.

    Attributes:
        verify_steps: verification steps, above zero.
        correct_drafts: drafts accepted, bonus tokens not counted.
        proposed_drafts: drafts proposed.
        histogram: histogram[i] = steps that accepted i drafts.
    """

    verify_steps: int
    correct_drafts: int | None = None
    proposed_drafts: int | None = None
    histogram: list[int] | None = None


@dataclass(slots=True)
class Reply:
    """One answered request. Times are readings of ``time.perf_counter``, in seconds.

    Attributes:
        text: the answer, without what a reasoning parser split off.
        reasoning: what a reasoning parser split off; None where there is none.
        output_ids, prompt_ids: token ids; None where the server doesn't give them.
        finish_reason: ``stop``, ``length``, ``abort`` or what else the server said.
        completion_tokens, prompt_tokens: the server's own counts.
        cached_tokens: prompt tokens that the server had in its cache; None where it doesn't say.
        spec: speculative counts; None where the request was never verified or the server reports nothing.
        sent_at, ended_at: when the request was sent and when its last byte had arrived.
        first_token_at: when the first chunk with a token arrived; None unless streamed.
        server_ttft: the server's own time to first token, s; None where it isn't reported.
        server_latency: the server's own end-to-end latency, s; None where it isn't reported.
        chunks: (time, tokens in it) of each streamed chunk; empty unless streamed.
    """

    text: str = ""
    reasoning: str | None = None
    output_ids: list[int] | None = None
    prompt_ids: list[int] | None = None
    finish_reason: str = ""
    completion_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    spec: SpecCounts | None = None
    sent_at: float = 0.0
    ended_at: float = 0.0
    first_token_at: float | None = None
    server_ttft: float | None = None
    server_latency: float | None = None
    chunks: list[tuple[float, int]] = field(default_factory=list)

    @property
    def latency(self) -> float:
        """End-to-end latency as the client saw it, s."""
        return self.ended_at - self.sent_at


class MalformedReply(ValueError):
    """A body with status 200 that is not what the route answers."""


def spec_counts(meta: Mapping[str, Any]) -> SpecCounts | None:
    """Reads the speculative fields of ``meta_info`` (or of ``spec_tokens_details``), of any version.

    A request that was never verified has none, or has zero steps: both give None, never an acceptance of 1.
    """
    steps = meta.get("spec_verify_ct")
    if not isinstance(steps, int) or steps <= 0:
        return None
    histogram = _first(meta, _HISTOGRAM)
    correct = _first(meta, _CORRECT)
    if correct is None and histogram is not None:
        correct = sum(accepted * times for accepted, times in enumerate(histogram))
    return SpecCounts(steps, correct, _first(meta, _PROPOSED), histogram)


def apply_meta_info(reply: Reply, meta: Mapping[str, Any]) -> None:
    """Takes over what ``meta_info`` says: counts, finish reason, speculative fields, the server's timings."""
    reply.completion_tokens = meta["completion_tokens"]
    reply.prompt_tokens = meta["prompt_tokens"]
    cached = meta.get("cached_tokens")
    if cached is not None:
        reply.cached_tokens = cached
    reason = meta.get("finish_reason")
    if reason is not None:
        reply.finish_reason = reason["type"] if isinstance(reason, dict) else str(reason)
    reply.spec = spec_counts(meta)
    reply.server_ttft = meta.get("first_token_latency")
    reply.server_latency = meta.get("e2e_latency")


def parse_chat(data: Any) -> Reply:
    """Reads the body of ``/v1/chat/completions``.

    Raises:
        MalformedReply: it lacks what every version sends: a choice with a message, and token counts.
    """
    try:
        choice = data["choices"][0]
        message = choice["message"]
        usage = data["usage"]
        reply = Reply(text=message.get("content") or "", reasoning=message.get("reasoning_content"))
        meta = choice.get("meta_info")
        if meta is not None:
            apply_meta_info(reply, meta)
        reply.completion_tokens = usage["completion_tokens"]
        reply.prompt_tokens = usage["prompt_tokens"]
        reply.finish_reason = choice.get("finish_reason") or reply.finish_reason
        reply.output_ids = choice.get("response_token_ids")
        reply.prompt_ids = choice.get("prompt_token_ids")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise MalformedReply(f"no chat completion: {error!r}") from error
    return reply


def parse_generate(data: Any) -> Reply:
    """Reads the body of ``/generate`` for one prompt.

    Raises:
        MalformedReply: it lacks ``meta_info`` with the token counts.
    """
    try:
        reply = Reply(text=data.get("text") or "", output_ids=data.get("output_ids"))
        apply_meta_info(reply, data["meta_info"])
    except (KeyError, TypeError, AttributeError) as error:
        raise MalformedReply(f"no generation: {error!r}") from error
    return reply


def _first(meta: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if meta.get(name) is not None:
            return meta[name]
    return None

"""An answer as SGLang's bodies: chat and generate, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from tests.support.scripted.replies import END_TOKEN, Reply
from tests.support.scripted.script import Pace, Wire

CREATED = 1_700_000_000
_OLDER_NAMES = {
    "spec_num_correct_drafts": "spec_accept_token_num",
    "spec_num_proposed_drafts": "spec_draft_token_num",
    "spec_correct_drafts_histogram": "spec_accept_histogram",
}
_STREAM_END = b"data: [DONE]\n\n"


def encoded(body: Any) -> bytes:
    """A body as SGLang writes JSON: compact, not escaped."""
    return orjson.dumps(body)


def event(body: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(body) + b"\n\n"


def latencies(reply: Reply, pace: Pace) -> tuple[float, float]:
    """Seconds until the first token and until the last one, as the pace implies."""
    return pace.per_request, pace.per_request + pace.per_step * max(len(reply.bursts) - 1, 0)


def finish_reason(reply: Reply, *, aborted: bool = False) -> dict[str, Any]:
    """Why the answer ended, in ``meta_info``'s form."""
    if aborted:
        return {"type": "abort", "message": "Abort in waiting queue"}
    if reply.finished:
        return {"type": "stop", "matched": END_TOKEN}
    return {"type": "length", "length": len(reply.output_ids)}


def speculative_fields(reply: Reply, wire: Wire) -> dict[str, Any]:
    """The fields of a verified answer, under the version's names; none where nothing was verified."""
    verification = reply.verification
    if verification is None:
        return {}
    fields = {
        "spec_accept_rate": verification.correct / verification.proposed,
        "spec_accept_length": len(reply.output_ids) / verification.steps,
        "spec_num_correct_drafts": verification.correct,
        "spec_num_proposed_drafts": verification.proposed,
        "spec_verify_ct": verification.steps,
        "spec_correct_drafts_histogram": verification.histogram,
    }
    return {_OLDER_NAMES.get(name, name): value for name, value in fields.items()} if wire.older_names else fields


def meta_info(
    reply: Reply, wire: Wire, pace: Pace, *, rid: str, prompt_tokens: int, cached: int, aborted: bool = False
) -> dict[str, Any]:
    """What the server tells about one finished request."""
    tokens = len(reply.output_ids)
    first, last = latencies(reply, pace)
    info: dict[str, Any] = {
        "id": rid,
        "finish_reason": finish_reason(reply, aborted=aborted),
        "prompt_tokens": prompt_tokens,
        "weight_version": "default",
        "completion_tokens": tokens,
        "cached_tokens": cached,
        "e2e_latency": last,
    }
    info.update(speculative_fields(reply, wire))
    if wire.metrics:
        info["queue_time"] = 0.0
        info["first_token_latency"] = first
        if last > first:
            info["decode_throughput"] = (tokens - 1) / (last - first)
    return info


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """The OpenAI usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": None,
    }


def chat_choice(index: int, reply: Reply, info: dict[str, Any]) -> dict[str, Any]:
    """One choice of a chat completion, without the optional fields."""
    reasoning = "".join(reply.pieces[: reply.reasoning_pieces])
    return {
        "index": index,
        "message": {
            "role": "assistant",
            "content": "".join(reply.pieces[reply.reasoning_pieces :]),
            "reasoning_content": reasoning or None,
        },
        "logprobs": None,
        "finish_reason": info["finish_reason"]["type"],
        "matched_stop": info["finish_reason"].get("matched"),
    }


def chat_completion(rid: str, model: str, choices: list[dict[str, Any]], prompt_tokens: int, tokens: int) -> Any:
    """A whole chat completion."""
    return {
        "id": rid,
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": choices,
        "usage": usage(prompt_tokens, tokens),
        "metadata": {"weight_version": "default"},
    }


def generation(reply: Reply, info: dict[str, Any]) -> dict[str, Any]:
    """One answer of ``/generate``."""
    return {"text": reply.text, "output_ids": list(reply.output_ids), "meta_info": info}


def chat_events(
    reply: Reply, info: dict[str, Any], *, model: str, with_usage: bool, with_details: bool
) -> Iterator[bytes]:
    """A streamed chat completion: one item a decoding step, then what ends the stream in one item."""

    def chunk(**fields: Any) -> bytes:
        return event(
            {"id": info["id"], "object": "chat.completion.chunk", "created": CREATED, "model": model, **fields}
        )

    def choice(delta: dict[str, Any], finish: str | None = None) -> list[dict[str, Any]]:
        return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "matched_stop": None}]

    opening = chunk(choices=choice({"role": "assistant", "content": "", "reasoning_content": None}))
    for start, stop in _spans(reply):
        cut = min(max(reply.reasoning_pieces, start), stop)
        said = b""
        if start < cut:
            delta = {"content": None, "reasoning_content": "".join(reply.pieces[start:cut])}
            said += chunk(choices=choice(delta))
        if text := "".join(reply.pieces[cut:stop]):
            said += chunk(choices=choice({"content": text, "reasoning_content": None}))
        yield opening + said
        opening = b""
    closing = chunk(choices=choice({"reasoning_content": None}, info["finish_reason"]["type"]))
    details = {name: value for name, value in info.items() if name.startswith("spec_")}
    if with_details and details:
        closing += chunk(choices=[], usage=None, sglext={"spec_tokens_details": details})
    if with_usage:
        closing += chunk(choices=[], usage=usage(info["prompt_tokens"], info["completion_tokens"]))
    yield closing + _STREAM_END


def generation_events(reply: Reply, info: dict[str, Any]) -> Iterator[bytes]:
    """A streamed generation: cumulative text and ids, one item a decoding step; the full ``meta_info`` comes last."""
    partial = {name: info[name] for name in ("id", "prompt_tokens", "weight_version", "cached_tokens")}
    for _, stop in _spans(reply):
        last = stop == len(reply.output_ids)
        told = info if last else {**partial, "finish_reason": None, "completion_tokens": stop}
        yield event(
            {"text": "".join(reply.pieces[:stop]), "output_ids": list(reply.output_ids[:stop]), "meta_info": told}
        )
    yield _STREAM_END


def _spans(reply: Reply) -> Iterator[tuple[int, int]]:
    """The tokens that each decoding step added, as [start, stop)."""
    stop = 0
    for burst in reply.bursts:
        start, stop = stop, stop + burst
        yield start, stop

"""What SGLang tells about a request: `meta_info`, usage, and the details of speculation."""

from typing import Any

from specforge.engine.build import Engine
from specforge.engine.request import Request

_VERSION = "default"
"""SGLang's name for weights that were never exchanged while running."""


def spec_fields(request: Request, nodes: int) -> dict[str, Any]:
    """The speculative fields; empty where the request was never verified. `nodes`: of a draft tree."""
    spec = request.spec
    if spec.verify_steps == 0:
        return {}
    proposed = spec.verify_steps * (nodes - 1)
    return {
        "spec_accept_rate": spec.correct_drafts / proposed,
        "spec_accept_length": request.output_length / spec.verify_steps,
        "spec_num_correct_drafts": spec.correct_drafts,
        "spec_num_proposed_drafts": proposed,
        "spec_verify_ct": spec.verify_steps,
        "spec_correct_drafts_histogram": spec.histogram,
    }


def spec_tokens_details(request: Request, nodes: int) -> dict[str, Any] | None:
    """The same under `sglext`, with the fields that only other algorithms fill."""
    given = spec_fields(request, nodes)
    if not given:
        return None
    return {**given, "spec_cap_length": 0.0, "spec_block_accept_length": 0.0, "spec_cap_lens_histogram": []}


def meta_info(request: Request, engine: Engine, produced: int, *, finished: bool) -> dict[str, Any]:
    """`meta_info` of a request that has given `produced` tokens to its client."""
    finish = request.finish if finished else None
    times = request.times
    meta: dict[str, Any] = {
        "id": request.rid,
        "finish_reason": finish.as_json() if finish else None,
        "prompt_tokens": request.prompt_length,
        "weight_version": _VERSION,
        "num_retractions": 0,
        "reasoning_tokens": 0,
        "completion_tokens": produced,
        "cached_tokens": request.cached,
        "cached_tokens_details": {"device": request.cached, "host": 0} if request.cached else None,
        "dp_rank": None,
    }
    if not finish:
        return meta
    meta["weight_versions"] = [{"version": _VERSION, "start": 0, "end": produced}]
    meta["e2e_latency"] = times.finished - times.received
    meta.update(spec_fields(request, engine.nodes))
    if engine.arguments.enable_metrics:
        meta.update(_timings(request, produced))
    return meta


def _timings(request: Request, produced: int) -> dict[str, Any]:
    """Timings in seconds; moments as seconds since the epoch."""
    times = request.times
    timings: dict[str, Any] = {
        "request_received_ts": times.received_at,
        "request_finished_ts": times.on_wall(times.finished),
    }
    if times.started:
        timings["queue_time"] = times.started - times.received
        timings["forward_entry_time"] = times.on_wall(times.started)
    if times.first_token:
        timings["first_token_latency"] = times.first_token - times.received
        timings["prefill_finished_time"] = times.on_wall(times.first_token)
        decoding = times.finished - times.first_token
        if produced > 1 and decoding > 0:
            timings["decode_throughput"] = (produced - 1) / decoding
    return timings


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int | None) -> dict[str, Any]:
    """The `usage` of the OpenAI endpoints; `cached_tokens` None where it is not reported."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": None if cached_tokens is None else {"cached_tokens": cached_tokens},
        "reasoning_tokens": 0,
        "completion_tokens_details": None,
    }


def weights_metadata(completion_tokens: int) -> dict[str, Any]:
    """The `metadata` of the OpenAI endpoints."""
    return {
        "weight_version": _VERSION,
        "weight_versions": [{"version": _VERSION, "start": 0, "end": completion_tokens}],
    }

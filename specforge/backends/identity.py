"""Whether the server that answers is the one that was asked for, and whether it can run the batch size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from specforge.backends.command import algorithm_for
from specforge.backends.options import LaunchOptions
from specforge.matrix import SpecConfig

# SGLang resolves these to one another: NEXTN to EAGLE, and both to FROZEN_KV_MTP for some drafts.
_SAME_ALGORITHM = frozenset({"EAGLE", "NEXTN", "FROZEN_KV_MTP"})


def mismatches(config: SpecConfig, options: LaunchOptions, info: Mapping[str, Any]) -> list[str]:
    """What ``/server_info`` reports otherwise than it was asked, as texts ``setting: reported, asked ...``.

    A setting that the server does not report at all can't be compared and is passed over; one that it reports as null
    can. Steps and topk count only where the configuration has them: NGRAM reports a topk of its own.
    """
    return list(_mismatches(config, options, info))


def _mismatches(config: SpecConfig, options: LaunchOptions, info: Mapping[str, Any]) -> Iterator[str]:
    algorithm = algorithm_for(config, options)

    def check(name: str, asked: object, same: bool) -> Iterator[str]:
        if name in info and not same:
            yield f"{name}: {info[name]!r}, asked {asked!r}"

    def equal(name: str, asked: object) -> Iterator[str]:
        return check(name, asked, info.get(name) == asked)

    reported_model = info.get("model_path")
    yield from check("model_path", options.model_path, _same_model(reported_model, options.model_path))
    yield from equal("random_seed", options.seed)
    reported = info.get("speculative_algorithm")
    yield from check("speculative_algorithm", algorithm, _same_algorithm(reported, algorithm))
    if algorithm is None:
        return
    yield from equal("speculative_num_draft_tokens", config.num_draft_tokens)
    if config.num_steps:
        yield from equal("speculative_num_steps", config.num_steps)
        yield from equal("speculative_eagle_topk", config.topk)
    draft = options.speculative_draft_model_path
    if draft is not None and algorithm != "NGRAM":
        reported_draft = info.get("speculative_draft_model_path")
        yield from check("speculative_draft_model_path", draft, _same_model(reported_draft, draft))


def _same_algorithm(reported: object, asked: str | None) -> bool:
    if not isinstance(reported, str):
        # Older servers report the text "None"; newer ones null.
        return asked is None and not reported
    reported = reported.upper()
    if asked is None:
        return reported == "NONE"
    return reported == asked or {reported, asked} <= _SAME_ALGORITHM


def _same_model(reported: object, asked: str) -> bool:
    """A server may report a Hub id as the folder that it resolved to, and a URL as its local copy."""
    if not isinstance(reported, str):
        return False
    if reported.rstrip("/") == asked.rstrip("/") or "://" in asked:
        return True
    if "models--" + asked.replace("/", "--") in reported.split(os.sep):
        return True
    return os.path.realpath(reported) == os.path.realpath(asked)


def capacity_warning(config: SpecConfig, info: Mapping[str, Any] | None) -> str | None:
    """A warning where the server would queue part of a batch; None where it fits, or where the server doesn't say.

    The capacity is ``effective_max_running_requests_per_dp`` of the first rank's internal state, times ``dp_size``.
    """
    if info is None:
        return None
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], Mapping) else {}
    per_rank = state.get("effective_max_running_requests_per_dp")
    if not isinstance(per_rank, int):
        return None
    ranks = info.get("dp_size")
    ranks = ranks if isinstance(ranks, int) and ranks > 0 else 1
    if config.batch_size <= per_rank * ranks:
        return None
    return (
        f"{config}: {config.batch_size} requests in flight are more than the {per_rank * ranks} that the server runs "
        f"at once ({per_rank} on each of {ranks} data-parallel ranks); the rest will queue"
    )

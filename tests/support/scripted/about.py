"""What a scripted server says about itself: server and model information, as SGLang does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.scripted.bodies import CREATED
from tests.support.scripted.script import Script


def server_info(script: Script, arguments: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """``/server_info``: resolved arguments, the state of each rank, the version.

    ``arguments`` are the command line's, by SGLang's names, as JSON values; the script's own say wins.
    """
    wire, speculation = script.wire, script.speculation
    info: dict[str, Any] = {
        "model_path": script.model,
        "tokenizer_path": script.model,
        "served_model_name": script.model,
        "context_length": None,
        "dtype": "auto",
        "tp_size": 1,
        "dp_size": 1,
        "pp_size": 1,
        "random_seed": 1234,
        "enable_metrics": wire.metrics,
        "disable_radix_cache": not wire.prefix_cache,
        "max_running_requests": wire.max_running_requests,
        **arguments,
        "speculative_algorithm": speculation and speculation.algorithm,
        "speculative_draft_model_path": speculation and speculation.draft_model_path,
        "speculative_num_steps": speculation and speculation.num_steps,
        "speculative_eagle_topk": speculation and (speculation.topk if speculation.num_steps else 10),
        "speculative_num_draft_tokens": speculation and speculation.num_draft_tokens,
        "launch_command": " ".join(command),
        "status": "ready",
        "version": wire.version,
        "max_req_input_len": wire.context_length - 6,
    }
    info.update(wire.server_info)
    state = {"effective_max_running_requests_per_dp": info["max_running_requests"]}
    info.setdefault("internal_states", [state] * info["dp_size"])
    return info


def model_info(script: Script) -> dict[str, Any]:
    """``/model_info``."""
    model = script.wire.server_info.get("model_path", script.model)
    return {
        "model_path": model,
        "served_model_name": model,
        "tokenizer_path": model,
        "is_generation": True,
        "weight_version": "default",
        "has_image_understanding": script.wire.images,
        "has_audio_understanding": False,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
    }


def models(script: Script) -> dict[str, Any]:
    """``/v1/models``."""
    model = script.wire.server_info.get("model_path", script.model)
    served = {
        "id": model,
        "object": "model",
        "created": CREATED,
        "owned_by": "sglang",
        "root": model,
        "parent": None,
        "max_model_len": script.wire.context_length,
    }
    return {"object": "list", "data": [served]}

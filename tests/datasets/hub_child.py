"""Loads what its standard input asks for, a JSON object a line, and answers each with one JSON line.

huggingface_hub reads HF_ENDPOINT when it is imported, so the scripted Hub needs a process of its own.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from specforge.datasets import LoadOptions, load
from specforge.errors import SpecForgeError
from specforge.matrix import BenchmarkSpec


def answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        benchmark = load(BenchmarkSpec.parse(request["spec"]), LoadOptions(**request.get("options", {})))
    except SpecForgeError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {
        "source": asdict(benchmark.source),
        "prompts": [
            {
                "row_id": prompt.row_id,
                "subset": prompt.subset,
                "messages": [dict(message) for message in prompt.messages],
                "has_image": prompt.has_image,
                "reference": repr(prompt.reference),
            }
            for prompt in benchmark.prompts
        ],
    }


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)

"""Records with numbers of one's choice: what a run would leave behind, in its real shape."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specforge.metrics.accuracy import accuracy_metrics
from specforge.results.load import SavedRun


def record(
    config: str = "1,3,1,4",
    benchmark: str = "gsm8k",
    *,
    rounds: Sequence[float] = (100.0, 101.0, 99.0),
    tokens: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    correct: Sequence[bool] | None = None,
    identical: Sequence[bool] | None = None,
    prompts: int = 40,
    subset: Sequence[str] = (),
) -> dict[str, Any]:
    """One cell: throughput by round; by prompt the tokens, verification steps and verdicts of a single round."""
    batch, num_steps, topk, draft_tokens = map(int, config.split(","))
    target_only = not num_steps and not draft_tokens
    tokens = list(tokens) if tokens is not None else [100 + 7 * (i % 11) for i in range(prompts)]
    prompts = len(tokens)
    row_ids = [f"{benchmark}-{i}" for i in range(prompts)]
    if steps is None and not target_only:
        steps = [max(1, round(t / (2.5 + 0.1 * (i % 5)))) for i, t in enumerate(tokens)]
    verdicts: list[bool | None] = list(correct) if correct is not None else [i % 4 != 0 for i in range(prompts)]
    metrics: dict[str, Any] = {
        "output_throughput": float(np.mean(rounds)) if len(rounds) else None,
        "rounds": [
            {
                "duration": sum(tokens) / r,
                "output_tokens": sum(tokens),
                "output_throughput": r,
                "usable": True,
                "latency_p50": 100 / r,
                "latency_p99": 200 / r,
                "ttft_p50": 3 / r,
                "tpot_p50": 1 / r,
                "acceptance_length": None,
            }
            for r in rounds
        ],
        "latency": {name: 100 / float(np.mean(rounds)) for name in ("mean", "p50", "p90", "p95", "p99")}
        if len(rounds)
        else None,
        "ttft": {"p50": 0.03, "p99": 0.05, "source": "server"},
        "tpot": {"p50": 0.01, "p99": 0.02, "source": "server"},
        "acceptance_length": None if steps is None else sum(tokens) / sum(steps),
        "acceptance_by_position": None
        if steps is None
        else {"marginal": [0.8, 0.55, 0.3], "conditional": [0.8, 0.69, 0.55]},
        **accuracy_metrics(row_ids, verdicts, [False] * prompts, [False] * prompts, ["ok"] * prompts),
        "lossless": None if identical is None else {"identical_share": float(np.mean(identical))},
        "speedup": None,
        "speedup_interval": None,
        "efficiency": None,
        "degenerate_share": 0.0,
        "truncated_share": 0.0,
        "truncated_thinking": 0,
        "degenerate": 0,
        "truncated": 0,
        "failed": 0,
        "retried": 0,
        "too_long": 0,
        "cached_token_share": 0.0,
        "requests": prompts,
        "reasons": {},
    }
    requests: dict[str, list[Any]] = {
        "row_id": row_ids,
        "round": [0] * prompts,
        "output_tokens": list(tokens),
        "verify_steps": [None] * prompts if steps is None else list(steps),
        "correct_drafts": [None] * prompts,
        "latency": [t / 100 for t in tokens],
        "ttft": [0.03] * prompts,
        "tpot": [0.01] * prompts,
        "correct": verdicts,
        "status": ["ok"] * prompts,
        "retries": [0] * prompts,
        "truncated": [False] * prompts,
        "truncated_thinking": [False] * prompts,
        "degenerate": [False] * prompts,
    }
    if identical is not None:
        requests["identical"] = list(identical)
    return {
        "format": 1,
        "config": {
            "batch_size": batch,
            "num_steps": num_steps,
            "topk": topk,
            "num_draft_tokens": draft_tokens,
            "algorithm": None if target_only else "EAGLE3",
        },
        "benchmark": {
            "spec": f"{benchmark}:{prompts}" + (":" + ",".join(subset) if subset else ""),
            "name": benchmark,
            "subset": list(subset),
            "num_prompts": prompts,
            "source": {
                "kind": "hub",
                "location": f"org/{benchmark}",
                "revision": "abc",
                "sha256": None,
                "split": "test",
                "few_shot": None,
            },
            "row_ids": row_ids,
            "hashes": {"static_turns": [f"h{i}" for i in row_ids], "token_ids": [None] * prompts, "all": "x"},
            "sampling": {"temperature": 0.0, "top_p": 1.0, "seed": 0},
            "max_new_tokens": 512,
            "seed": 0,
            "rounds": len(rounds),
            "scorer": "math",
            "notes": [],
        },
        "metrics": metrics,
        "requests": requests,
        "environment": {
            "backend": "embedded",
            "machine": {"processor": "one"},
            "gpus": None,
            "server": {"version": "0.5.23", "model_path": "m"},
            "flags": [],
            "git_commit": {"id": "c0ffee", "dirty": False},
            "note": None,
            "warnings": [],
        },
        "status": "ok",
        "reason": None,
        "rows": None,
    }


def run(*cells: dict[str, Any], label: str = "run", folder: Path = Path(".")) -> SavedRun:
    """A saved run of these records."""
    return SavedRun(label, [copy.deepcopy(cell) for cell in cells], folder)  # type: ignore[misc]


def slowed(cell: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same cell with its throughput times ``factor``, round by round."""
    slower = copy.deepcopy(cell)
    slower["metrics"]["output_throughput"] *= factor
    for entry in slower["metrics"]["rounds"]:
        entry["output_throughput"] *= factor
        entry["latency_p50"] /= factor
    return slower


def save(path: Path, *cells: dict[str, Any]) -> Path:
    """Writes a file as pytest-benchmark does, with the records in extra_info."""
    stats = {
        "min": 1.0,
        "max": 1.2,
        "mean": 1.1,
        "stddev": 0.1,
        "rounds": 2,
        "median": 1.1,
        "iqr": 0.1,
        "q1": 1.0,
        "q3": 1.2,
        "iqr_outliers": 0,
        "stddev_outliers": 0,
        "outliers": "0;0",
        "ld15iqr": 1.0,
        "hd15iqr": 1.2,
        "ops": 0.9,
        "total": 2.2,
        "data": [1.0, 1.2],
        "iterations": 1,
    }
    benchmarks = [
        {
            "group": cell["benchmark"]["spec"],
            "name": f"test_cell[{index}]",
            "fullname": f"bench_tests/test_cell.py::test_cell[{index}]",
            "params": None,
            "param": None,
            "extra_info": cell,
            "options": {},
            "stats": stats,
        }
        for index, cell in enumerate(cells)
    ]
    document = {
        "machine_info": {"node": "here", "machine": "x86_64", "python_version": "3.11"},
        "commit_info": {"id": "c0ffee", "branch": "main"},
        "benchmarks": benchmarks,
        "datetime": "2026-01-01T00:00:00+00:00",
        "version": "5.3.0",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path

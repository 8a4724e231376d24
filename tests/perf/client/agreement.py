"""Whether ``specforge benchmark`` and SGLang's own benchmark agree about a server that runs.

    python tests/perf/client/agreement.py --base-url URL --sglang PYTHON --tokenizer FOLDER
        [--dataset gsm8k --samples] [--num-prompts N] [--max-new-tokens N] [--ignore-eos] [--concurrency N]
        [--repeats 12]

Both send the same prompts in the same order, with the same limits and as many in flight, in turns, each first in every
other repeat; printed are both throughputs of each repeat, the median of their ratios with an interval that holds the
true one with 95 % (of ranks, so that a disturbed run weighs no more than another), and the acceptance lengths. SGLang's
benchmark prints the average that the server itself keeps over its latest decode steps, where the first token of an
answer does not count; so it is compared with ``acceptance_length_decode``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def specforge(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The record of one run."""
    path = folder / "record.json"
    command = [
        *(sys.executable, "-m", "specforge.cli", "benchmark", "--base-url", given.base_url, "--quiet"),
        *("--dataset", given.dataset, *(["--samples"] if given.samples else [])),
        *("--num-prompts", given.num_prompts, "--max-new-tokens", given.max_new_tokens),
        *("--concurrency", given.concurrency, "--output-json", path),
        *(["--extra-body", '{"ignore_eos": true}'] if given.ignore_eos else []),
    ]
    _run(command, {})
    return dict(json.loads(path.read_text(encoding="utf-8")))


def sglang(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The result of one run of SGLang's benchmark over the prompts of the latest record."""
    rows = [json.loads(line) for line in (folder / "record.rows.jsonl").read_text(encoding="utf-8").splitlines()]
    by_id = {row["row_id"]: row["messages"] for row in rows}
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    lines = [
        json.dumps({"messages": by_id[row_id], "max_tokens": given.max_new_tokens})
        for row_id in record["benchmark"]["row_ids"]
    ]
    prompts, result = folder / "prompts.jsonl", folder / "result.jsonl"
    prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result.unlink(missing_ok=True)
    stand_in = folder / "stand-in"
    stand_in.mkdir(exist_ok=True)
    # Its image datasets import this at once; none of them is used here.
    (stand_in / "datasets.py").write_text("load_dataset = None\n", encoding="utf-8")
    command = [
        *(given.sglang, "-m", "sglang.benchmark.serving", "--backend", "sglang-oai-chat", "--disable-stream"),
        *("--base-url", given.base_url, "--tokenizer", given.tokenizer, "--dataset-name", "openai"),
        *("--dataset-path", prompts, "--num-prompts", len(lines), "--max-concurrency", given.concurrency),
        *([] if given.ignore_eos else ["--disable-ignore-eos"]),
        *("--flush-cache", "--disable-tqdm", "--output-file", result),
        *("--extra-request-body", json.dumps({"temperature": 0, "top_p": 1, "seed": 42})),
    ]
    _run(command, {"PYTHONPATH": str(stand_in), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})
    return dict(json.loads(result.read_text(encoding="utf-8").splitlines()[-1]))


def _run(command: list[Any], environment: dict[str, str]) -> None:
    done = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-3000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--sglang", required=True, metavar="PYTHON", help="interpreter that has SGLang")
    parser.add_argument("--tokenizer", required=True, metavar="FOLDER")
    parser.add_argument("--dataset", default="gsm8k")
    parser.add_argument("--samples", action="store_true")
    parser.add_argument("--num-prompts", type=int, default=20)
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--ignore-eos", action="store_true", help="every answer as long as --max-new-tokens")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=12)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        specforge(given, folder)
        for repeat in range(given.repeats):
            result = sglang(given, folder) if repeat % 2 else None
            metrics = specforge(given, folder)["metrics"]
            result = result or sglang(given, folder)
            ratios.append(metrics["output_throughput"] / result["output_throughput"])
            print(
                f"throughput {metrics['output_throughput']:.2f} and {result['output_throughput']:.2f} tok/s, "
                f"ratio {ratios[-1]:.3f}; mean latency {metrics['latency']['mean']:.3f} and "
                f"{result['mean_e2e_latency_ms'] / 1000:.3f} s, duration {metrics['duration']:.2f} and "
                f"{result['duration']:.2f} s; tokens {metrics['output_tokens']} and {result['total_output_tokens']}; "
                f"acceptance length {metrics['acceptance_length']}, decode alone "
                f"{metrics['acceptance_length_decode']}, and {result['accept_length']}",
                flush=True,
            )
    low, high = interval(sorted(ratios))
    print(f"median ratio of throughputs: {statistics.median(ratios):.3f}, 95 % interval {low:.3f} to {high:.3f}")


def interval(ordered: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median: the innermost two of the ordered values that hold it so often (binomial)."""
    count, outside, rank = len(ordered), 0.0, 0
    while (outside := outside + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    at = max(rank - 1, 0)
    return ordered[at], ordered[count - 1 - at]


if __name__ == "__main__":
    main()

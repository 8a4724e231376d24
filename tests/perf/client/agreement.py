"""Whether ``specforge benchmark`` and SGLang's own benchmark agree about a server that runs.

    python tests/perf/client/agreement.py --base-url URL --sglang PYTHON --tokenizer FOLDER
        [--dataset gsm8k --samples] [--num-prompts N] [--max-new-tokens N] [--ignore-eos] [--concurrency N]
        [--repeats 12]

Both send the same prompts in the same order, with the same limits and as many in flight, in turns, each first in every
other repeat. They are held against each other in two ways. One run after another: both throughputs of each repeat, and
the median of their ratios with an interval that holds the true one with 95 % (of ranks, so that a disturbed run weighs
no more than another); a server that computes may have run faster in one of them. And within each run: a proxy that
both go through keeps when each response came, and its tokens over its window are what either should have found,
however fast the server was in that run. The proxy counts tokens and verification steps as well. SGLang's benchmark
prints the average that the server itself keeps over its latest decode steps, where the first token of an answer does
not count; so it is compared with ``acceptance_length_decode``.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if not __package__:  # run by path: the helpers beside this file must not hide packages of the same name
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from tests.support.recording_proxy import RecordingProxy, generations, read_exchanges
from tests.support.recount import recount

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
    ratios: dict[str, list[float]] = {"specforge ÷ SGLang's": [], "specforge ÷ wire": [], "SGLang's ÷ wire": []}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wire = folder / "wire.jsonl"
        with RecordingProxy(given.base_url, wire) as proxy:
            given.base_url = proxy.base_url
            specforge(given, folder)
            for repeat in range(given.repeats):
                seen: dict[str, tuple[dict[str, Any], Wire]] = {}
                for run in (specforge, sglang) if repeat % 2 == 0 else (sglang, specforge):
                    wire.write_bytes(b"")
                    seen[run.__name__] = run(given, folder), Wire.read(wire)
                (record, on_wire), (result, on_wire_too) = seen["specforge"], seen["sglang"]
                metrics = record["metrics"]
                found = metrics["output_throughput"], result["output_throughput"]
                for name, ratio in zip(
                    ratios,
                    (found[0] / found[1], found[0] / on_wire.throughput, found[1] / on_wire_too.throughput),
                    strict=True,
                ):
                    ratios[name].append(ratio)
                print(
                    f"throughput {found[0]:.2f} and {found[1]:.2f} tok/s, ratio {found[0] / found[1]:.3f}; "
                    f"÷ wire {found[0] / on_wire.throughput:.4f} and {found[1] / on_wire_too.throughput:.4f}; "
                    f"tokens {metrics['output_tokens']} and {result['total_output_tokens']}, "
                    f"wire {on_wire.tokens} and {on_wire_too.tokens}; "
                    f"acceptance length {metrics['acceptance_length']}, wire {on_wire.acceptance_length}; decode alone "
                    f"{metrics['acceptance_length_decode']} and {result['accept_length']}",
                    flush=True,
                )
    for name, found_ratios in ratios.items():
        low, high = interval(sorted(found_ratios))
        print(f"{name}: median {statistics.median(found_ratios):.4f}, 95 % interval {low:.4f} to {high:.4f}")


@dataclass(frozen=True)
class Wire:
    """What a proxy saw of the measured requests of one run: those after the last time the cache was flushed."""

    tokens: int
    window: float
    acceptance_length: float | None

    @property
    def throughput(self) -> float:
        """Output tokens a second, from the first request to the last response."""
        return self.tokens / self.window

    @classmethod
    def read(cls, path: Path) -> Wire:
        exchanges = read_exchanges(path)
        flushed = max(exchange.ended for exchange in exchanges if exchange.path.endswith("/flush_cache"))
        measured = [exchange for exchange in generations(exchanges) if exchange.started >= flushed]
        counted = recount([exchange.response for exchange in measured])
        window = max(exchange.ended for exchange in measured) - min(exchange.started for exchange in measured)
        return cls(counted.tokens, window, counted.acceptance_length if counted.steps else None)


def interval(ordered: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median: the innermost two of the ordered values that hold it so often (binomial)."""
    count, outside, rank = len(ordered), 0.0, 0
    while (outside := outside + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    at = max(rank - 1, 0)
    return ordered[at], ordered[count - 1 - at]


if __name__ == "__main__":
    main()

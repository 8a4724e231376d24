"""Compares ``specforge benchmark``'s client with a bare aiohttp loop and with SGLang's own benchmark.

    python tests/perf/client/compare.py [--sglang PYTHON --tokenizer FOLDER] [--repeats 5] [--load N ...]

Each repeat runs all clients one after the other against one scripted server, and ratios are taken within a repeat, so
that a busy machine slows both sides of a ratio. Printed is the median of each; docs/performance.md holds the results.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

if not __package__:  # run by path: the helpers beside this file must not hide packages of the same name
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from tests.perf.client.loads import CHUNKS, LOADS, ClientLoad
from tests.support.processes import free_port, running, wait_until
from tests.support.scripted.script import dump

ROOT = Path(__file__).resolve().parents[3]
_HERE = Path(__file__).resolve().parent
_START_SECONDS = 60.0
_SAMPLES = ROOT / "specforge" / "datasets" / "samples" / "gsm8k.jsonl"

Result = dict[str, float]


@contextmanager
def server(load: ClientLoad, folder: Path) -> Iterator[str]:
    """The load's server, in a process of its own."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    if load.script is None:
        command = [sys.executable, str(_HERE / "streamer.py"), str(port), str(CHUNKS)]
    else:
        command = [sys.executable, str(ROOT / "tests" / "support" / "scripted_server.py"), "--port", str(port)]
        command += ["--script", str(dump(load.script, folder / "script.json")), "--speculative-algorithm", "EAGLE3"]
    with running(command, cwd=ROOT, log=folder / "server.log"):
        wait_until(lambda: _ready(url), within=_START_SECONDS, what="the server")
        yield url


def _ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/ready", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def run_bare(load: ClientLoad, url: str, folder: Path) -> Result:
    command = [sys.executable, str(_HERE / "bare.py"), url, str(prompts(folder)), load.concurrency, load.requests]
    return dict(json.loads(_output(command)))


def run_specforge(load: ClientLoad, url: str, folder: Path) -> Result:
    record_path = folder / "specforge.json"
    _output(
        [
            *(sys.executable, "-m", "specforge.cli", "benchmark", "--dataset", "gsm8k", "--samples", "--quiet"),
            *("--base-url", url, "--num-prompts", load.requests, "--concurrency", load.concurrency),
            *("--output-json", record_path, *(("--stream",) if load.stream else ())),
        ]
    )
    record = json.loads(record_path.read_text(encoding="utf-8"))
    client = record["environment"]["client"]
    return {
        "rate": record["metrics"]["request_throughput"],
        "cpu": client["cpu_per_request"],
        "tokens": record["metrics"]["output_tokens"],
    }


def run_sglang(python: str, tokenizer: str) -> Callable[[ClientLoad, str, Path], Result]:
    """SGLang's own benchmark, as another client."""

    def run(load: ClientLoad, url: str, folder: Path) -> Result:
        result_path = folder / "sglang.jsonl"
        result_path.unlink(missing_ok=True)
        asked = ["--backend", "sglang-oai-chat", "--dataset-name", "openai", "--dataset-path", prompts(folder, load)]
        if load.stream:
            asked = ["--backend", "sglang", "--dataset-name", "random-ids"]
            asked += ["--random-input-len", 32, "--random-output-len", CHUNKS, "--random-range-ratio", 1]
        command = [
            *(python, "-m", "sglang.benchmark.serving", *asked, "--base-url", url, "--tokenizer", tokenizer),
            *("--num-prompts", load.requests, "--max-concurrency", load.concurrency, "--output-file", result_path),
            *(() if load.stream else ("--disable-stream",)),
            *("--disable-tqdm", "--warmup-requests", 8),
        ]
        stand_in = folder / "stand-in"
        stand_in.mkdir(exist_ok=True)
        # Its image datasets import this at once; none of them is used here.
        (stand_in / "datasets.py").write_text("load_dataset = None\n", encoding="utf-8")
        _output(command, {"PYTHONPATH": str(stand_in), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})
        result = json.loads(result_path.read_text(encoding="utf-8").splitlines()[-1])
        return {"rate": result["request_throughput"], "tokens": result["total_output_tokens"]}

    return run


def prompts(folder: Path, load: ClientLoad | None = None) -> Path:
    """Chat requests of the built-in gsm8k samples, repeated as often as a load needs them, as JSON lines."""
    rows = [json.loads(line) for line in _SAMPLES.read_text(encoding="utf-8").splitlines()]
    count = load.requests if load is not None else len(rows)
    path = folder / f"prompts-{count}.jsonl"
    if not path.exists():
        lines = (
            json.dumps(
                {"messages": [{"role": "user", "content": rows[at % len(rows)]["question"]}], "max_tokens": 2048}
            )
            for at in range(count)
        )
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _output(command: list[object], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": _python_path(), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def _python_path() -> str:
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def compare(load: ClientLoad, clients: dict[str, Callable[[ClientLoad, str, Path], Result]], repeats: int) -> None:
    """Runs one load and prints medians and ratios."""
    results: dict[str, list[Result]] = {name: [] for name in clients}
    with tempfile.TemporaryDirectory() as made, server(load, Path(made)) as url:
        for _ in range(repeats):
            for name, client in clients.items():
                if name == "bare" and load.stream:
                    continue
                results[name].append(client(load, url, Path(made)))
                print(f"    {name}: {results[name][-1]}", file=sys.stderr)
    limit = f", limit {load.limit:,.0f} req/s" if load.limit else ""
    print(f"{load.name} ({load.requests} requests{limit})")
    for name, runs in results.items():
        if not runs:
            continue
        rate = statistics.median(run["rate"] for run in runs)
        cpu = (
            f", {1e6 * statistics.median(run['cpu'] for run in runs):,.0f} us of CPU a request"
            if "cpu" in runs[0]
            else ""
        )
        share = f", {rate / load.limit:.1%} of the limit" if load.limit else ""
        print(f"  {name:<10} {rate:8,.0f} req/s{cpu}{share}")
        if name != "specforge":
            ours = results["specforge"]
            ratio = statistics.median(a["rate"] / b["rate"] for a, b in zip(ours, runs, strict=True))
            line = f"    specforge has {ratio:.2f} of its rate"
            if "cpu" in runs[0]:
                costs = statistics.median(a["cpu"] / b["cpu"] for a, b in zip(ours, runs, strict=True))
                line += f", at {costs:.2f} times its CPU a request"
            print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sglang", default=None, metavar="PYTHON", help="interpreter that has SGLang")
    parser.add_argument("--tokenizer", default=None, metavar="FOLDER", help="a tokenizer for SGLang's benchmark")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--load", type=int, nargs="+", default=None, help="which loads, by number from 0")
    given = parser.parse_args()
    clients: dict[str, Callable[[ClientLoad, str, Path], Result]] = {"bare": run_bare, "specforge": run_specforge}
    if given.sglang and given.tokenizer:
        clients["sglang"] = run_sglang(given.sglang, given.tokenizer)
    for at, load in enumerate(LOADS):
        if given.load is None or at in given.load:
            compare(load, clients, given.repeats)


if __name__ == "__main__":
    main()

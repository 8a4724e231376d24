"""A dry run says what the run then does."""

from __future__ import annotations

import re
import shlex
from typing import Any

from tests.plugin.stage import LIMIT, Stage

MATRIX = (
    *("--config-list", "1,0,0,0", "2,3,1,4", "--benchmark-list", "gsm8k:5", "mtbench:3"),
    *("--rounds", "2", "--server-args", "--context-length 5000", "--api-key", "a-key"),
)


def test_it_starts_and_writes_nothing_and_tells_the_commands_and_requests_of_the_run(stage: Stage):
    launching = ["bench_tests", *stage.launching(), *MATRIX]
    dry, run = stage.several([*launching, "--dry-run", "-p", "no:cacheprovider"], launching)
    lines = [line.strip() for line in dry.output.splitlines()]
    assert (dry.code, run.code) == (0, 0)
    assert "dry run: nothing is started, nothing is written" in lines
    assert {"1,0,0,0: gsm8k:5 mtbench:3", "2,3,1,4 EAGLE3: gsm8k:5 mtbench:3"} <= set(lines)
    told = [shlex.split(line) for line in lines if "scripted_server.py" in line]
    started = stage.starts()
    assert len(told) == len(started) == 2, "those of the dry run would be two more"
    assert [without_port(words[-len(argv) :]) for words, argv in zip(told, started, strict=True)] == [
        without_port(argv) for argv in started
    ]
    (total,) = re.findall(r"^requests: (\d+) = \d+ measured in 2 rounds \+ \d+ of warm-up$", dry.output, re.MULTILINE)
    assert int(total) == sum(is_measured_or_warm_up(entry) for entry in stage.log_entries())
    assert len(list(stage.results.glob("*.json"))) == 1


def is_measured_or_warm_up(entry: dict[str, Any]) -> bool:
    """By its token limit, which is another one where a server is asked whether it answers."""
    body = entry.get("request") or {}
    return body.get("max_tokens", body.get("sampling_params", {}).get("max_new_tokens")) in (LIMIT, 256)


def without_port(words: list[str]) -> list[str]:
    """A server's flags but for its port, which is another one each time, and its key, which is starred out."""
    hidden = {words.index(name) + 1 for name in ("--port", "--api-key")}
    return [word for place, word in enumerate(words) if place not in hidden]


def test_it_divides_the_devices_among_workers_without_starting_any_and_reads_nothing_from_the_hub(stage: Stage):
    shared = ["bench_tests", "--dry-run", "--model-path", "org/model", "--gpus", "0,1,2,3", "--tp", "2"]
    parallel, alone, too_many = stage.several(
        [*shared, "-n", "2", "--config-list", "4,0,0,0", "8,0,0,0", "--benchmark-list", "mtbench:10", "gsm8k"],
        [*shared, "--config-list", "1,0,0,0", "-k", "nothing-of-that-name"],
        [*shared, "-n", "3", "--config-list", "1,0,0,0"],
    )
    assert parallel.code == 0
    assert "workers: 2 workers, devices 0,1 | 2,3" in parallel.output
    assert "created: " not in parallel.output
    assert "mtbench:10: up to 10 prompts of 2 turns" in parallel.output
    assert "gsm8k: all prompts" in parallel.output
    warmup = (2 * 2 + 1) * (4 + 8)  # two batches of two turns, and one of the second cell
    assert f"requests: up to {40 + warmup} = 40 measured + {warmup} of warm-up, and those of gsm8k" in parallel.output
    assert alone.code == 5, "nothing was selected"
    assert too_many.code == 4
    assert "-n 3: 4 visible devices make 2 shares of 2" in too_many.output
    assert not stage.results.exists()

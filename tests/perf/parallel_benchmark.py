"""What two workers save, as a ratio: pytest tests/perf/parallel_benchmark.py -s

Not collected by default. A matrix of 4 configurations x 3 benchmarks is run without workers and on two of them in turn,
and the least of several runs is compared, pytest's own start included. The embedded engine needs two cores that nothing
else uses; scripted servers, which wait instead of computing, as a GPU's seem to, need little.
"""

import os
from pathlib import Path
from time import perf_counter

from tests.plugin.stage import Stage
from tests.support.scripted import Pace, Script

ROUNDS = 3
AT_MOST = 0.65
CONFIGS = ("1,0,0,0", "1,3,1,4", "1,1,1,2", "1,2,1,3")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def seconds(stage: Stage, *arguments: str) -> float:
    started = perf_counter()
    run = stage.pytest("bench_tests", "--config-list", *CONFIGS, *arguments, within=1800, environment=ENVIRONMENT)
    assert run.code == 0, run.output
    return perf_counter() - started


def ratio(stage: Stage, *arguments: str) -> float:
    alone, together = [], []
    for _ in range(ROUNDS):
        alone.append(seconds(stage, *arguments))
        together.append(seconds(stage, *arguments, "-n", "2"))
    found = min(together) / min(alone)
    load = os.getloadavg()[0]
    print(f"\n{min(alone):.1f} s alone, {min(together):.1f} s on two workers: {found:.2f} (load {load:.1f})")
    return found


def test_two_workers_of_the_embedded_engine_take_under_two_thirds_of_the_time(tmp_path: Path) -> None:
    benchmarks = ("--benchmark-list", "gsm8k:10", "mtbench:10", "math500:10")
    assert ratio(Stage(tmp_path), *benchmarks, "--max-new-tokens", "256", "--rounds", "8") < AT_MOST


def test_two_workers_on_servers_elsewhere_take_under_two_thirds_of_the_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    paced = stage.launching(Script(pace=Pace(per_request=0.25)))
    assert ratio(stage, *paced, "--benchmark-list", "gsm8k:12", "mtbench:6", "gsm8k:10") < AT_MOST

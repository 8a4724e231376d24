"""What two workers save, as a ratio: pytest tests/perf/parallel_benchmark.py -s

Not collected by default. A matrix of the embedded engine, 4 configurations x 3 benchmarks, is run without workers and
on two of them in turn, and the least of several runs is compared, pytest's own start included. It needs two cores that
nothing else uses.
"""

from pathlib import Path
from time import perf_counter

from tests.support.processes import ROOT, run_pytest

ROUNDS = 3
AT_MOST = 0.65
MATRIX = (
    *("--config-list", "1,0,0,0", "1,3,1,4", "1,1,1,2", "1,2,1,3"),
    *("--benchmark-list", "gsm8k:10", "mtbench:10", "math500:10", "--max-new-tokens", "256"),
)


def seconds(folder: Path, *arguments: str) -> float:
    started = perf_counter()
    run = run_pytest(
        *(str(ROOT / "bench_tests"), "--rootdir", str(ROOT), "-c", str(ROOT / "pytest.ini"), *MATRIX, *arguments),
        cwd=folder,
        within=1800,
        environment={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.code == 0, run.output
    return perf_counter() - started


def test_two_workers_take_under_two_thirds_of_the_time(tmp_path: Path) -> None:
    alone, together = [], []
    for _ in range(ROUNDS):
        alone.append(seconds(tmp_path))
        together.append(seconds(tmp_path, "-n", "2"))
    ratio = min(together) / min(alone)
    print(f"\n{min(alone):.1f} s alone, {min(together):.1f} s on two workers: {ratio:.2f}")
    assert ratio < AT_MOST

"""Times loading and scoring against their goals. Not collected by default: ``python -m tests.perf.scoring_benchmark``.

Goals on two cores: MATH-500's 500 reference solutions in under 15 s; a dataset of 14,000 rows read, drawn and rendered
from a local file in under 3 s. Solutions of the wrong row, most of which need algebra, are timed beside them.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from specforge.datasets import LoadOptions, load
from specforge.matrix import BenchmarkSpec
from specforge.scoring.math import MathScorer
from specforge.scoring.score import Answer

REPEATS = 3
MATH = Path(__file__).parents[3] / "shared" / "data" / "math500" / "test.jsonl"
SUBJECTS = ("anatomy", "astronomy", "virology", "management")


def fastest(work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def loading(folder: Path) -> float:
    """Seconds for 14,000 multiple-choice rows of a local file, all rendered."""
    file = folder / "test.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for number in range(14_000):
            row = {
                "question": f"Question {number}: " + "which of these holds in the case described? " * 8,
                "subject": SUBJECTS[number % len(SUBJECTS)],
                "choices": [f"option {letter} of {number}" for letter in "ABCD"],
                "answer": number % 4,
            }
            out.write(json.dumps(row) + "\n")
    options = LoadOptions(dataset_paths={"mmlu": str(file)})
    return fastest(lambda: load(BenchmarkSpec.parse("mmlu"), options))


def scoring(shift: int) -> float:
    """Seconds for MATH-500's reference solutions, each scored against the row ``shift`` further on."""
    rows = [json.loads(line) for line in MATH.read_text(encoding="utf-8").splitlines()]
    answers = [
        Answer(str(place), rows[(place + shift) % len(rows)]["answer"], (row["solution"],))
        for place, row in enumerate(rows)
    ]
    return fastest(lambda: MathScorer(workers=2).score_all(answers))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"14,000 rows loaded and rendered: {loading(Path(folder)):.2f} s (goal: 3 s)")
    if not MATH.exists():
        print("MATH-500: ../shared/data is not there")
        return
    print(f"500 reference solutions: {scoring(0):.2f} s (goal: 15 s)")
    print(f"500 solutions of the next row: {scoring(1):.2f} s")


if __name__ == "__main__":
    main()

"""Speed of the sandbox against bare interpreters: pytest tests/perf/sandbox_benchmark.py -s

Not collected by default. HumanEval's and MBPP's 421 reference solutions, checked in turn by a bare interpreter each,
one after the other, and by the scorer on two workers; the least of each counts. Bare took 18 s where the scorer may
take 12.
"""

import subprocess
import sys
from time import perf_counter

import pytest

from specforge.scoring.code import CodeScorer
from specforge.scoring.sandbox import SandboxSettings
from specforge.scoring.score import Answer
from tests.scoring.code.test_references import humaneval, mbpp, rows

ROUNDS = 2
AT_MOST = 12 / 18


def test_checking_the_references_takes_two_thirds_of_bare_interpreters() -> None:
    functions = rows("data", "humaneval", "test.jsonl")
    asserts = rows("data", "mbpp", "sanitized-test.jsonl")
    answers = [Answer(row["task_id"], humaneval(row), (row["canonical_solution"],)) for row in functions]
    answers += [Answer(str(row["task_id"]), mbpp(row), (row["code"],)) for row in asserts]
    scripts = [
        f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\ncheck({row['entry_point']})" for row in functions
    ]
    scripts += ["\n".join([*row["test_imports"], row["code"], *row["test_list"]]) for row in asserts]
    scorer = CodeScorer(SandboxSettings(allow=True, wall_s=60, workers=2))
    bare, ours = [], []

    for _ in range(ROUNDS):
        start = perf_counter()
        for script in scripts:
            subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
        bare.append(perf_counter() - start)
        start = perf_counter()
        assert all(score.correct for score in scorer.score_all(answers))
        ours.append(perf_counter() - start)

    print(f"\nbare {min(bare):.1f} s, sandbox {min(ours):.1f} s ({scorer.isolation.kind}, {scorer.isolation.level})")
    if min(ours) > AT_MOST * min(bare):
        pytest.fail(f"{min(ours):.1f} s is more than {AT_MOST:.0%} of {min(bare):.1f} s")

"""Whole runs of the matrix against a server of known pace, and then against one that is slower by a known share."""

from __future__ import annotations

from pathlib import Path

import pytest

from specforge.results.gate import GateResult, Verdict, gate
from specforge.results.load import load_run
from specforge.results.pairing import pair_runs
from specforge.results.tolerance import parse_tolerances
from tests.plugin.stage import Stage
from tests.support.scripted.script import Pace, Scene, Script, Speculation

pytestmark = pytest.mark.slow

STEP = 0.02
"""Seconds a decoding step of the server takes: long beside what a shared machine adds to it."""


def run_once(stage: Stage, name: str, speculative_step: float) -> Path:
    """One run of the matrix; only the server with a draft has another pace."""
    flags = stage.launching(
        Scene(Script(pace=Pace(STEP, speculative_step), speculation=Speculation()), {"--speculative-num-steps": "3"}),
        Script(pace=Pace(STEP, STEP)),
    )
    done = stage.pytest(
        "bench_tests",
        *flags,
        *("--config-list", "1,0,0,0", "1,3,1,4", "--benchmark-list", "gsm8k:6"),
        *("--rounds", "5", "--output-dir", str(stage.folder / name), "--benchmark-save", name),
    )
    assert done.code == 0, done.output
    (path,) = (stage.folder / name).glob("*.json")
    return path


def judge(base: Path, new: Path) -> GateResult:
    pairs = pair_runs(load_run(str(base)), load_run(str(new))).pairs
    tolerances = ["throughput:5%", "tpot:5%", "acceptance_length:2%", "accuracy:2pp"]
    return gate(pairs, parse_tolerances(tolerances))


def test_two_runs_of_the_same_matrix_pass_and_a_draft_slowed_by_15_percent_fails(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    first, second = (run_once(stage, name, STEP) for name in ("first", "second"))
    again = judge(first, second)
    assert not again.failed(), "\n".join(again.lines)

    slower = judge(first, run_once(stage, "slower", STEP / 0.85))
    print("\n".join(slower.lines))
    regressions = {
        (finding.comparison.pair.new.config, finding.metric.name)
        for finding in slower.of(Verdict.REGRESSION)
        if finding.comparison is not None
    }
    assert regressions == {("1,3,1,4", "throughput"), ("1,3,1,4", "tpot")}

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

from specforge.errors import UsageError
from specforge.results.gate import GateResult, Verdict, gate
from specforge.results.pairing import pair_runs
from specforge.results.tolerance import parse_tolerances
from tests.results.records import record, run, slowed

SPEED = (100.0, 101.0, 99.0, 100.5, 99.5)


def judge(base: list[dict[str, Any]], new: list[dict[str, Any]], *tolerances: str) -> GateResult:
    return gate(pair_runs(run(*base, label="before"), run(*new, label="after")).pairs, parse_tolerances(tolerances))


def only(result: GateResult) -> Verdict:
    (finding,) = result.findings
    return finding.verdict


def test_a_run_against_itself_passes() -> None:
    cells = [record("1,0,0,0", rounds=SPEED), record("1,3,1,4", rounds=SPEED)]
    result = judge(cells, cells, "throughput:5%", "acceptance_length:2%", "accuracy:2pp")
    assert not result.failed(fail_on_undecided=True)
    assert {finding.verdict for finding in result.findings} == {Verdict.OK}


def test_a_loss_of_throughput_beyond_the_tolerance_is_a_regression_and_names_cell_and_metric() -> None:
    kept, lost = record("1,0,0,0", rounds=SPEED), record("1,3,1,4", rounds=SPEED)
    result = judge([kept, lost], [kept, slowed(lost, 0.85)], "throughput:5%")
    assert result.failed()
    (line,) = [finding.line for finding in result.of(Verdict.REGRESSION)]
    assert re.fullmatch(
        r"REGRESSION 1,3,1,4 gsm8k:40 throughput 100\.0 tok/s -> 85\.0 tok/s, -15\.0 % \[-1\d\.\d, -1\d\.\d\], "
        r"tolerance 5 %",
        line,
    )


def test_a_significant_loss_within_the_tolerance_passes() -> None:
    cell = record(rounds=SPEED)
    assert only(judge([cell], [slowed(cell, 0.96)], "throughput:5%")) is Verdict.OK


def test_a_loss_that_noise_explains_is_undecided_and_says_how_coarse_the_test_was() -> None:
    base = record(rounds=(100.0, 130.0, 80.0))
    result = judge([base], [slowed(base, 0.9)], "throughput:5%")
    assert only(result) is Verdict.UNDECIDED
    assert not result.failed()
    assert result.failed(fail_on_undecided=True)
    assert "3 rounds can only show losses beyond" in result.lines[0]


def test_noise_that_hides_any_plausible_loss_is_undecided_also_where_nothing_moved() -> None:
    base, new = record(rounds=(100.0, 150.0, 70.0)), record(rounds=(101.0, 149.0, 70.5))
    assert only(judge([base], [new], "throughput:5%")) is Verdict.UNDECIDED


def test_one_round_cannot_tell() -> None:
    result = judge([record(rounds=[100.0])], [record(rounds=[80.0])], "throughput:5%")
    assert only(result) is Verdict.UNDECIDED
    assert "1 usable rounds before and 1 after" in result.lines[0]


def test_an_unusable_round_does_not_count() -> None:
    base, new = record(rounds=SPEED), record(rounds=(*SPEED, 10.0))
    new["metrics"]["rounds"][-1]["usable"] = False
    assert only(judge([base], [new], "throughput:5%")) is Verdict.OK


def test_an_improvement_is_shown_and_passes() -> None:
    cell = record(rounds=SPEED)
    result = judge([cell], [slowed(cell, 1.2)], "throughput:5%")
    assert only(result) is Verdict.IMPROVED
    assert "+20.0 %" in result.lines[0]


def test_a_longer_latency_is_the_regression_of_a_metric_that_should_be_low() -> None:
    cell = record(rounds=SPEED)
    assert only(judge([cell], [slowed(cell, 0.8)], "latency_p50:5%")) is Verdict.REGRESSION
    assert only(judge([cell], [slowed(cell, 1.25)], "latency_p50:5%")) is Verdict.IMPROVED


def test_a_metric_that_vanished_fails_with_its_reason() -> None:
    base, new = record(), record()
    new["metrics"] |= {"accuracy": None, "reasons": {"accuracy": "--allow-code-execution was not given"}}
    result = judge([base], [new], "accuracy:2pp")
    assert only(result) is Verdict.VANISHED
    assert result.failed()
    assert "--allow-code-execution was not given" in result.lines[0]


def test_a_cell_that_failed_in_the_new_run_fails_with_its_reason() -> None:
    base, new = record(rounds=SPEED), record(rounds=SPEED)
    new["metrics"] |= {"output_throughput": None, "rounds": []}
    new |= {"status": "failed", "reason": "the server died"}
    result = judge([base], [new], "throughput:5%")
    assert result.failed()
    assert "the server died" in result.lines[0]


def test_a_metric_that_only_the_new_run_has_is_undecided() -> None:
    base, new = record(), record()
    base["metrics"]["accuracy"] = None
    assert only(judge([base], [new], "accuracy:2pp")) is Verdict.UNDECIDED


def test_a_metric_that_no_cell_has_is_undecided_rather_than_silently_passed() -> None:
    cell = record("1,0,0,0")
    result = judge([cell], [cell], "acceptance_length:2%")
    assert only(result) is Verdict.UNDECIDED
    assert "neither run measured it" in result.lines[0]


def test_target_only_cells_have_no_acceptance_to_gate() -> None:
    cells = [record("1,0,0,0"), record("1,3,1,4")]
    result = judge(cells, cells, "acceptance_length:2%")
    assert [finding.comparison.pair.new.config for finding in result.findings if finding.comparison] == ["1,3,1,4"]


def test_a_loss_of_acceptance_on_every_prompt_is_found_with_five_prompts() -> None:
    base = record(tokens=[100, 120, 90, 200, 150], steps=[34, 41, 29, 66, 50])
    new = record(tokens=[100, 120, 90, 200, 150], steps=[51, 60, 45, 97, 76])
    assert only(judge([base], [new], "acceptance_length:2%")) is Verdict.REGRESSION


def test_lost_answers_beyond_the_tolerance_are_a_regression() -> None:
    base = record(correct=[True] * 100, prompts=100)
    new = record(correct=[True] * 85 + [False] * 15, prompts=100)
    result = judge([base], [new], "accuracy:2pp")
    assert only(result) is Verdict.REGRESSION
    assert "accuracy 100.0 % -> 85.0 %, -15.0 pp" in result.lines[0]


def test_flips_in_both_directions_are_no_regression() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(400) < 0.7
    right, flipped = (np.where(rng.random(400) < 0.04, ~truth, truth) for _ in range(2))
    base, new = (
        record(correct=side.tolist(), prompts=400, tokens=[100] * 400, steps=[40] * 400) for side in (right, flipped)
    )
    assert not judge([base], [new], "accuracy:2pp").failed()


def test_five_prompts_decide_nothing_about_accuracy_once_an_answer_changed() -> None:
    base = record(correct=[True] * 5, prompts=5)
    new = record(correct=[True] * 4 + [False], prompts=5)
    result = judge([base], [new], "accuracy:2pp")
    assert only(result) is Verdict.UNDECIDED


def test_losslessness_is_gated_by_prompt() -> None:
    base = record(identical=[True] * 40)
    new = record(identical=[True] * 25 + [False] * 15)
    assert only(judge([base], [new], "lossless:5pp")) is Verdict.REGRESSION


def test_loops_are_gated_where_there_were_none() -> None:
    base, new = record(), record()
    new["requests"]["degenerate"] = [True] * 12 + [False] * 28
    new["metrics"]["degenerate_share"] = 0.3
    result = judge([base], [new], "degenerate:1pp")
    assert only(result) is Verdict.REGRESSION


def test_a_speedup_is_judged_with_the_target_only_cell_of_its_run() -> None:
    target, draft = record("1,0,0,0", rounds=SPEED), record("1,3,1,4", rounds=[2 * r for r in SPEED])
    draft["metrics"]["speedup"] = 2.0
    all_slower = [slowed(target, 0.8), slowed(draft, 0.8)]
    assert not judge([target, draft], all_slower, "speedup:5%").failed()
    worse = slowed(draft, 0.8)
    worse["metrics"]["speedup"] = 1.6
    result = judge([target, draft], [target, worse], "speedup:5%")
    (finding,) = result.of(Verdict.REGRESSION)
    assert "speedup 2.00× -> 1.60×, -20.0 %" in finding.line


def test_a_speedup_without_the_target_only_cell_is_undecided() -> None:
    draft = record("1,3,1,4", rounds=SPEED)
    draft["metrics"]["speedup"] = 2.0
    assert only(judge([draft], [draft], "speedup:5%")) is Verdict.UNDECIDED


def test_the_most_specific_tolerance_counts() -> None:
    cells = [
        record("1,3,1,4", rounds=SPEED),
        record("4,3,1,4", rounds=SPEED),
        record("4,3,1,4", "mtbench", rounds=SPEED),
    ]
    slower = [slowed(cell, 0.93) for cell in cells]
    result = judge(cells, slower, "throughput:5%", "throughput@4,3,1,4:10%", "throughput@mtbench@4,3,1,4:2%")
    assert {f.comparison.pair.new.label: f.verdict for f in result.findings if f.comparison} == {
        "1,3,1,4 gsm8k:40": Verdict.REGRESSION,
        "4,3,1,4 gsm8k:40": Verdict.OK,
        "4,3,1,4 mtbench:40": Verdict.REGRESSION,
    }


def test_a_scope_gates_only_its_cells_where_no_general_tolerance_is_given() -> None:
    cells = [record("1,3,1,4", rounds=SPEED), record("4,3,1,4", rounds=SPEED)]
    result = judge(cells, [slowed(cell, 0.8) for cell in cells], "throughput@4,3,1,4:5%")
    assert [f.comparison.pair.new.config for f in result.findings if f.comparison] == ["4,3,1,4"]


def test_a_scope_that_no_cell_answers_to_is_refused() -> None:
    cell = record("1,3,1,4")
    with pytest.raises(UsageError, match="throughput@gms8k: no cell that both runs have; they have 1,3,1,4, gsm8k:40"):
        judge([cell], [cell], "throughput@gms8k:5%")


def test_absolute_tolerances_are_in_the_metrics_own_unit() -> None:
    cell = record(rounds=SPEED)
    assert only(judge([cell], [slowed(cell, 0.9)], "throughput:12")) is Verdict.OK
    assert only(judge([cell], [slowed(cell, 0.9)], "throughput:8")) is Verdict.REGRESSION


def test_many_cells_need_more_evidence_each() -> None:
    wave = (96.0, 104.0, 97.0, 103.0)
    base = [record(f"{batch},3,1,4", rounds=wave) for batch in range(1, 31)]
    new = copy.deepcopy(base)
    new[0] = slowed(new[0], 0.935)
    alone = judge(base[:1], new[:1], "throughput:5%")
    assert alone.findings[0].p_value is not None
    among_many = judge(base, new, "throughput:5%")
    assert among_many.findings[0].p_value is not None
    assert among_many.findings[0].comparison is not None
    assert among_many.findings[0].p_value > 10 * among_many.findings[0].comparison.p_worse


def test_the_last_line_sums_up() -> None:
    kept, lost = record("1,0,0,0", rounds=SPEED), record("1,3,1,4", rounds=SPEED)
    result = judge([kept, lost], [kept, slowed(lost, 0.8)], "throughput:5%")
    assert result.lines[-1] == "gate: 1 regression, 1 ok"

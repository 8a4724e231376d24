from __future__ import annotations

import copy
from typing import Any

import pytest

from specforge.errors import RecordError
from specforge.results.pairing import pair_runs
from tests.results.records import record, run


def test_shared_cells_are_paired_and_the_rest_is_listed() -> None:
    base = run(record("1,0,0,0"), record("1,3,1,4"))
    new = run(record("1,3,1,4"), record("4,3,1,4"))
    pairing = pair_runs(base, new)
    assert [pair.new.label for pair in pairing.pairs] == ["1,3,1,4 gsm8k:40"]
    assert pairing.only_base == ["1,0,0,0 gsm8k:40"]
    assert pairing.only_new == ["4,3,1,4 gsm8k:40"]
    assert pairing.warnings == []


def test_runs_without_a_shared_cell_are_refused() -> None:
    with pytest.raises(RecordError, match="no cell in common: 1,0,0,0 gsm8k:40 against 1,3,1,4 gsm8k:40"):
        pair_runs(run(record("1,0,0,0")), run(record("1,3,1,4")))


def test_subsets_make_another_cell() -> None:
    with pytest.raises(RecordError, match="no cell in common"):
        pair_runs(run(record(benchmark="ceval")), run(record(benchmark="ceval", subset=["accountant"])))


def changed(path: str, value: Any) -> dict[str, Any]:
    cell = record()
    *parents, last = path.split(".")
    target: Any = cell
    for key in parents:
        target = target[key]
    target[last] = value
    return cell


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("benchmark.sampling.temperature", 0.7, "sampling differs: temperature 0.0 against 0.7"),
        ("benchmark.max_new_tokens", 64, "max_new_tokens differs: 512 against 64"),
        ("benchmark.source.revision", "def", "source.revision differs: 'abc' against 'def'"),
        ("benchmark.source.few_shot", "5 from train", "source.few_shot differs: None against '5 from train'"),
        ("benchmark.row_ids", ["gsm8k-0", "other"], "the prompts differ: 40 against 2, 1 of them shared"),
        (
            "benchmark.hashes.static_turns",
            ["x"] + [f"hgsm8k-{i}" for i in range(1, 40)],
            "the text of 1 of 40 prompts differs",
        ),
    ],
)
def test_what_was_asked_must_be_the_same_unless_forced(path: str, value: Any, message: str) -> None:
    base, new = run(record(), label="before"), run(changed(path, value), label="after")
    with pytest.raises(RecordError, match="before and after can't be compared: 1,3,1,4 gsm8k:40: ") as caught:
        pair_runs(base, new)
    assert message in str(caught.value)
    forced = pair_runs(base, new, force=True)
    assert len(forced.pairs) == 1
    assert any(message in warning and "(forced)" in warning for warning in forced.warnings)


def test_prompts_rendered_to_other_tokens_are_refused() -> None:
    base, new = record(), record()
    base["benchmark"]["hashes"]["token_ids"] = ["a"] * 40
    new["benchmark"]["hashes"]["token_ids"] = ["a"] * 39 + ["b"]
    with pytest.raises(RecordError, match="the token ids of 1 of 40 prompts differs"):
        pair_runs(run(base), run(new))


def test_token_hashes_that_one_server_does_not_give_are_not_held_against_it() -> None:
    new = record()
    new["benchmark"]["hashes"]["token_ids"] = ["a"] * 40
    assert pair_runs(run(record()), run(new)).warnings == []


@pytest.mark.parametrize(
    "path, value, warning",
    [
        ("environment.server.version", "0.5.24", "server.version differs: '0.5.23' against '0.5.24'"),
        ("environment.machine.processor", "two", "machine.processor differs: 'one' against 'two'"),
        ("metrics.cached_token_share", 0.4, "the share of cached prompt tokens differs: 0% against 40%"),
        ("benchmark.scorer", "other", "the scorer differs: math against other"),
    ],
)
def test_other_surroundings_are_compared_and_said(path: str, value: Any, warning: str) -> None:
    pairing = pair_runs(run(record()), run(changed(path, value)))
    assert [warning in line for line in pairing.warnings] == [True]


def test_what_all_cells_have_in_common_is_said_once() -> None:
    base = [record("1,0,0,0"), record("1,3,1,4")]
    new = copy.deepcopy(base)
    for cell in new:
        cell["environment"]["server"]["version"] = "0.6"
    assert pair_runs(run(*base), run(*new)).warnings == ["server.version differs: '0.5.23' against '0.6'"]


def test_a_partial_cell_is_said() -> None:
    partial = record() | {"status": "partial", "reason": "interrupted"}
    (warning,) = pair_runs(run(record()), run(partial)).warnings
    assert warning == "1,3,1,4 gsm8k:40: the new cell is partial: interrupted"


def test_cells_that_a_run_has_twice_are_told():
    base = run(record(prompts=10), record(prompts=40))
    assert "run: 2 cells are alike, the last of them is compared: 1,3,1,4 gsm8k:40" in pair_runs(base, base).warnings

"""The worker processes: limited in time, replaced when they break, gone when done."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from specforge.scoring.math import MathScorer
from specforge.scoring.math.workers import compare_all
from specforge.scoring.score import Answer

TOWER = ("5", "9^{9^{9^{9}}}")


def children() -> set[int]:
    """This process's child processes."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def test_a_comparison_that_never_ends_is_no_verdict_and_the_next_one_works() -> None:
    pairs = [(r"\sqrt{8}", r"2\sqrt{2}"), TOWER, (r"\sqrt{12}", r"2\sqrt{3}")]
    assert compare_all(pairs, limit_s=5, workers=1) == [True, None, True]


def test_a_comparison_that_never_ends_is_scored_as_wrong_with_the_reason() -> None:
    (score,) = MathScorer(limit_s=1).score_all([Answer("row", TOWER[0], (rf"\boxed{{{TOWER[1]}}}",))])
    assert score.correct is False
    assert score.answer == TOWER[1]
    assert "took more than 1 s" in score.reason


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
def test_no_worker_outlives_the_batch() -> None:
    before = children()
    compare_all([(r"\sqrt{8}", r"2\sqrt{2}")], limit_s=60, workers=2)
    assert children() <= before


def test_scoring_works_in_any_thread() -> None:
    answers = [Answer("row", r"\sqrt{8}", (r"\boxed{2\sqrt{2}}",))]
    found: list[bool | None] = []
    thread = threading.Thread(target=lambda: found.append(MathScorer().score_all(answers)[0].correct))
    thread.start()
    thread.join()
    assert found == [True]


def test_answers_that_notation_decides_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    scores = MathScorer().score_all([Answer("a", "42", (r"\boxed{42}",)), Answer("b", "42", (r"\boxed{43}",))])
    assert [score.correct for score in scores] == [True, False]

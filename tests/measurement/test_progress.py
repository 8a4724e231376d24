"""What a person sees while a cell is measured."""

from __future__ import annotations

import io

from specforge.measurement.progress import Bar


def test_the_bar_runs_with_throughput_and_acceptance_and_ends_with_the_accuracy():
    """Of 9 prompts 3 have ended: 20 tokens each, at 10, 11 and 12 s; the first answer starts the clock."""
    terminal, now = io.StringIO(), iter([10.0, 11.0, 12.0, 12.0, 12.0, 12.0, 12.0])
    bar = Bar("a cell", 9, terminal, clock=lambda: next(now))
    bar._bar.mininterval = 0
    for steps in (10, 5, None):
        bar.advance(20, steps)
    bar.scored(0.5)
    bar.close()
    last = terminal.getvalue().rstrip("\r ").rpartition("\r")[2]
    assert "a cell" in last
    assert "3/9" in last
    assert "20 tok/s, accept 2.67, acc 50.0%" in last


def test_a_round_that_begins_anew_takes_only_its_own_prompts_back():
    terminal = io.StringIO()
    bar = Bar("a cell", 6, terminal)
    for _ in range(5):
        bar.advance(20, 10)
    bar.restart(3)
    bar.scored(None)
    bar.close()
    last = terminal.getvalue().rstrip("\r ").rpartition("\r")[2]
    assert "3/6" in last
    assert "accept" not in last

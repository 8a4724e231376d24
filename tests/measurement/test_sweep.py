"""Where more load stops giving more throughput."""

from __future__ import annotations

import pytest

from specforge.load.schedule import ClosedLoop, OpenLoop
from specforge.measurement.sweep import Level, saturation


@pytest.mark.parametrize(
    "throughputs, place",
    [
        ([100.0, 200.0, 400.0], None),
        ([100.0, 200.0, 204.0, 206.0], 1),
        ([100.0, 200.0, 150.0], 1),
        ([100.0, 98.0, 140.0, 141.0], 2),  # a dip is not the end of growth
        ([100.0, 103.0, 106.0], 1),  # the last level passes the first by more than 5 %, the second by less
        ([100.0, None, 101.0], 0),
        ([100.0], None),
        ([], None),
        ([None, None], None),
    ],
)
def test_the_first_level_that_no_later_one_exceeds_by_five_percent_is_marked(
    throughputs: list[float | None], place: int | None
) -> None:
    assert saturation(throughputs) == place


def test_a_level_says_how_requests_are_sent_and_how_many_warm_up() -> None:
    assert Level(8).schedule(1) == ClosedLoop(8)
    assert Level(None, 2.5, poisson=False).schedule(1) == OpenLoop(2.5, False, 1, None)
    assert Level(4, 2.5).schedule(3) == OpenLoop(2.5, True, 3, 4)
    assert (Level(8).warmup_size, Level(4, 2.5).warmup_size, Level(None, 2.5).warmup_size) == (8, 4, 8)
    assert (str(Level(8)), str(Level(None, 2.5)), Level(8).arrivals) == ("concurrency-8", "rate-2.5", None)

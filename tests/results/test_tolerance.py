from __future__ import annotations

import pytest

from specforge.errors import UsageError
from specforge.results.tolerance import Kind, Tolerance


@pytest.mark.parametrize(
    "text, metric, amount, kind, scopes",
    [
        ("throughput:5%", "throughput", 0.05, Kind.RELATIVE, ()),
        ("accuracy:2pp", "accuracy", 0.02, Kind.POINTS, ()),
        ("accuracy:0.02", "accuracy", 0.02, Kind.ABSOLUTE, ()),
        ("acceptance_length:.1", "acceptance_length", 0.1, Kind.ABSOLUTE, ()),
        ("output_throughput: 2.5 %", "throughput", 0.025, Kind.RELATIVE, ()),
        ("throughput@4,3,1,4:3%", "throughput", 0.03, Kind.RELATIVE, ("4,3,1,4",)),
        ("throughput@4,3,1,9:3%", "throughput", 0.03, Kind.RELATIVE, ("4,3,1,4",)),
        ("accuracy@ceval:5:accountant:3pp", "accuracy", 0.03, Kind.POINTS, ("ceval:5:accountant",)),
        ("ttft@1,0,0,0@GSM8K:3%", "ttft", 0.03, Kind.RELATIVE, ("1,0,0,0", "gsm8k")),
    ],
)
def test_tolerances_are_read(text: str, metric: str, amount: float, kind: Kind, scopes: tuple[str, ...]) -> None:
    found = Tolerance.parse(text)
    assert (found.metric.name, found.kind, found.scopes) == (metric, kind, scopes)
    assert found.amount == pytest.approx(amount)


@pytest.mark.parametrize(
    "text, message",
    [
        ("throughput", "not a tolerance; expected METRIC:TOLERANCE"),
        ("throughput:", "neither a percentage"),
        ("throughput:five%", "neither a percentage"),
        ("throughput:-5%", "neither a percentage"),
        ("throughput:2pp", "percentage points are for shares"),
        ("throughput@:5%", "not a tolerance"),
        ("thruput:5%", "no metric 'thruput'; did you mean throughput"),
        (":5%", "no metric ''"),
    ],
)
def test_what_does_not_parse_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match="--fail-on: ") as caught:
        Tolerance.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

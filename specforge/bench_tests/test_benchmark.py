"""The benchmark itself: one test a cell of the matrix. The command line says which cells there are."""

from collections.abc import Callable
from typing import Any


def test_benchmark(measure_cell: Callable[[], dict[str, Any]]) -> None:
    """Measures one configuration on one benchmark; the record goes into pytest-benchmark's JSON."""
    record = measure_cell()
    assert record["status"] == "ok", record["reason"]

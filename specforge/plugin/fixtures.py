"""The fixtures of a benchmark test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from specforge.matrix import BenchmarkSpec
    from specforge.plugin.run import ServerOfRun
    from specforge.results.record import CellRecord


@pytest.fixture(scope="session")
def specforge_server(request: pytest.FixtureRequest) -> Iterator[ServerOfRun]:
    """The server of one configuration: launched before its first cell, stopped before the next configuration's."""
    from specforge.plugin.state import run_of

    server = run_of(request.config).start_server(request.param)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def benchmark_spec(request: pytest.FixtureRequest) -> BenchmarkSpec:
    """The benchmark of this cell."""
    spec: BenchmarkSpec = request.param
    return spec


@pytest.fixture
def measure_cell(
    request: pytest.FixtureRequest, specforge_server: ServerOfRun, benchmark_spec: BenchmarkSpec, benchmark: Any
) -> Callable[[], CellRecord]:
    """Measures this cell: a function that gives its record, and fails or skips the test where it should."""
    from specforge.plugin.cells import measure_item

    return lambda: measure_item(request.node, specforge_server, benchmark_spec, benchmark)

"""One test item a cell."""

from __future__ import annotations

import pytest

from specforge.plugin.state import settings_of


def generate_cells(metafunc: pytest.Metafunc) -> None:
    """Parametrizes a test that asks for the server, for the benchmark, or for both.

    The configuration comes first, so that ids read ``[1,3,1,4-gsm8k:5]`` and items are ordered by configuration.
    """
    if "specforge_server" in metafunc.fixturenames:
        configs = settings_of(metafunc.config).configs
        metafunc.parametrize("specforge_server", configs, ids=map(str, configs), indirect=True, scope="session")
    if "benchmark_spec" in metafunc.fixturenames:
        specs = settings_of(metafunc.config).benchmarks
        metafunc.parametrize("benchmark_spec", specs, ids=map(str, specs), indirect=True)

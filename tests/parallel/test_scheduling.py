"""Which tests are cells, and of which configuration."""

from __future__ import annotations

import pytest

from specforge.plugin.parallel.scheduling import configuration_of


@pytest.mark.parametrize(
    "nodeid, configuration",
    [
        ("bench_tests/test_benchmark.py::test_benchmark[1,3,1,4-gsm8k:5]", "1,3,1,4"),
        ("test_own.py::TestOwn::test_own[16,0,0,0]", "16,0,0,0"),
        ("test_own.py::test_own[short-1,0,0,8-ceval:5:a,b]", "1,0,0,8"),
        ("test_own.py::test_own[gsm8k:5-1,0,0,8]", "1,0,0,8"),
        ("test_own.py::test_own[gsm8k:5:1,2,3,4]", None),
        ("test_own.py::test_own[1,3,1,4,5-x]", None),
        ("test_own.py::test_own[11,3,1]", None),
        ("test_own.py::test_own", None),
        ("folder-1,3,1,4-x/test_own.py::test_own", None),
    ],
)
def test_the_configuration_of_a_test_id(nodeid: str, configuration: str | None):
    assert configuration_of(nodeid) == configuration

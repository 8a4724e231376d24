from __future__ import annotations

from pathlib import Path

import pytest

from specforge.errors import UsageError
from specforge.metrics.catalog import CATALOG, catalog_table, find_metric


def test_names_and_other_names_are_unique() -> None:
    names = [name for metric in CATALOG for name in (metric.name, *metric.also)]
    assert len(names) == len(set(names))


def test_a_metric_is_found_by_its_other_names() -> None:
    assert find_metric("output_throughput").name == "throughput"


@pytest.mark.parametrize(
    "wrong, nearest",
    [("thruput", "throughput"), ("acceptence_length", "acceptance_length"), ("latency", "latency_p50"), ("acc", "acc")],
)
def test_a_name_that_does_not_exist_gets_the_nearest_one(wrong: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean {nearest}"):
        find_metric(wrong)


def test_a_value_is_read_where_the_record_has_it() -> None:
    assert find_metric("lossless").value({"lossless": {"identical_share": 0.5}}) == 0.5
    assert find_metric("lossless").value({"lossless": None}) is None
    assert find_metric("accuracy").value({}) is None


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("throughput", 152.34, "152.3 tok/s"),
        ("throughput", 3.456, "3.46 tok/s"),
        ("latency_p50", 0.0381, "38.1 ms"),
        ("latency_p99", 12.34, "12.3 s"),
        ("accuracy", 0.715, "71.5 %"),
        ("speedup", 1.876, "1.88×"),
        ("acceptance_length", 2.71828, "2.718"),
        ("ttft", None, "–"),
    ],
)
def test_values_are_shown_with_their_units(name: str, value: float | None, text: str) -> None:
    assert find_metric(name).show(value) == text


def test_the_docs_hold_this_very_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "comparing.md"
    assert catalog_table() in page.read_text(encoding="utf-8")

"""Inter-token latency from streamed chunks."""

from __future__ import annotations

import pytest

from specforge.metrics.chunks import ChunkGaps


def test_a_chunk_of_several_tokens_counts_as_as_many_gaps():
    gaps = ChunkGaps()
    gaps.add(0.04, 4)
    gaps.add(0.10, 1)
    summary = gaps.summary()
    assert summary is not None
    assert gaps.total == 5
    assert summary["mean"] == pytest.approx(0.14 / 5)
    assert summary["p50"] == pytest.approx(0.01, rel=0.011)
    assert summary["p99"] == pytest.approx(0.10, rel=0.011)


@pytest.mark.parametrize("gap", [2e-5, 1e-3, 0.0123, 0.9, 45.0, 3000.0])
def test_percentiles_are_right_to_one_per_cent(gap: float):
    gaps = ChunkGaps()
    gaps.add(gap, 1)
    summary = gaps.summary()
    assert summary is not None
    assert summary["p50"] == pytest.approx(gap, rel=0.0101)


def test_extremes_are_counted_and_nothing_streamed_is_null():
    gaps = ChunkGaps()
    assert gaps.summary() is None
    gaps.add(0.0, 1)
    gaps.add(1e9, 1)
    assert gaps.total == 2


def test_parts_merge_to_what_one_would_have_been():
    parts = ChunkGaps(), ChunkGaps()
    whole = ChunkGaps()
    for at, gap in enumerate((0.01, 0.02, 0.5, 0.25)):
        parts[at % 2].add(gap, at + 1)
        whole.add(gap, at + 1)
    assert ChunkGaps.merged(parts).summary() == whole.summary()
    assert ChunkGaps.merged(()).summary() is None

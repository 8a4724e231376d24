from __future__ import annotations

from specforge.metrics.lossless import Lossless, first_difference


def test_equal_answers_have_no_first_difference() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None


def test_the_first_difference_is_the_index_of_the_token() -> None:
    assert first_difference([1, 2, 3], [1, 9, 3]) == 1


def test_a_shorter_answer_differs_where_it_ends() -> None:
    assert first_difference([1, 2], [1, 2, 3]) == 2


def test_nothing_compared_is_none() -> None:
    assert Lossless().result() is None


def test_identical_share_and_quantiles_are_over_turns() -> None:
    count = Lossless()
    assert count.add([[1, 2], [3]], [[1, 2], [3]])
    assert not count.add([[1, 2, 3, 4]], [[1, 2, 3, 5]])
    assert count.result() == {
        "identical_share": 2 / 3,
        "compared": 3,
        "identical": 2,
        "first_difference": {"p10": 3.0, "p50": 3.0, "p90": 3.0},
    }


def test_a_second_turn_counts_only_where_the_first_is_identical() -> None:
    count = Lossless()
    assert not count.add([[1, 2], [3]], [[1, 7], [3]])
    result = count.result()
    assert result is not None
    assert (result["compared"], result["identical"]) == (1, 0)


def test_a_turn_that_is_missing_is_not_identical() -> None:
    assert not Lossless().add([[1], [2]], [[1]])


def test_all_identical_has_no_first_difference() -> None:
    count = Lossless()
    count.add([[1]], [[1]])
    result = count.result()
    assert result is not None
    assert result["first_difference"] is None

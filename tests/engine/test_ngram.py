"""Drafts from what was seen before."""

from specforge.engine.drafts.ngram import Corpus, merged


def test_the_longest_match_comes_first() -> None:
    corpus = Corpus()
    corpus.extend("a", [1, 2, 3, 10])
    corpus.extend("b", [9, 2, 3, 20])
    assert corpus.continuations([1, 2, 3], 1) == [[10], [20]]


def test_of_equal_matches_the_latest_comes_first() -> None:
    corpus = Corpus()
    corpus.extend("a", [2, 3, 10, 2, 3, 20])
    assert corpus.continuations([2, 3], 1) == [[20], [10]]


def test_a_single_token_matches_where_no_pair_does() -> None:
    corpus = Corpus()
    corpus.extend("a", [7, 3, 10])
    assert corpus.continuations([2, 3], 5) == [[10]]


def test_the_end_of_a_stream_has_no_continuation() -> None:
    corpus = Corpus()
    corpus.extend("a", [1, 2])
    assert corpus.continuations([1, 2], 5) == []


def test_a_cleared_corpus_knows_nothing() -> None:
    corpus = Corpus()
    corpus.extend("a", [1, 2, 3])
    corpus.clear()
    assert corpus.continuations([1, 2], 5) == []
    assert corpus.tokens == 0


def test_one_continuation_fills_the_tree() -> None:
    assert merged([[5, 6, 7, 8]], 3) == [(0, 5), (1, 6), (2, 7)]


def test_common_beginnings_are_one_path() -> None:
    assert merged([[5, 6], [5, 7]], 3) == [(0, 5), (1, 6), (1, 7)]


def test_the_second_continuation_gets_in() -> None:
    nodes = merged([[1, 2, 3, 4, 5, 6], [9, 8, 7]], 6)
    assert (0, 9) in nodes
    assert nodes[:3] == [(0, 1), (1, 2), (2, 3)]
    assert len(nodes) == 6

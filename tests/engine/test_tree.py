"""Draft trees: their growth, their masks, their verification."""

import numpy as np
import pytest

from specforge.engine.tree import Beam, DraftTree, chain, largest
from specforge.engine.verify import walk


def test_a_chain_sees_all_that_goes_before() -> None:
    tree = chain(np.array([[5, 6, 7]]))
    np.testing.assert_array_equal(tree.visible[0], np.tri(3, dtype=bool))
    np.testing.assert_array_equal(tree.depths, [[0, 1, 2]])


def test_a_node_sees_its_ancestors_and_itself() -> None:
    tree = DraftTree.of(np.zeros((1, 5), int), np.array([[-1, 0, 0, 2, 1]]))
    expected = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 0, 0, 1]]
    np.testing.assert_array_equal(tree.visible[0], np.array(expected, bool))
    np.testing.assert_array_equal(tree.depths, [[0, 1, 1, 2, 2]])


def test_an_unconnected_node_sees_itself_alone() -> None:
    tree = DraftTree.of(np.zeros((1, 3), int), np.array([[-1, 0, -1]]))
    np.testing.assert_array_equal(tree.visible[0, 2], [False, False, True])


@pytest.mark.parametrize("count", [1, 3, 10])
def test_largest_gives_the_best_first(count: int) -> None:
    values = np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32)
    np.testing.assert_array_equal(largest(values, count), np.argsort(-values, axis=1)[:, :count])


def grown(steps: int, topk: int, requests: int, seed: int) -> tuple[Beam, list[dict[tuple[int, ...], float]]]:
    """A beam over random probabilities, and by brute force the score of every path it has seen."""
    random = np.random.default_rng(seed)
    beam = Beam(topk)
    scores: list[dict[tuple[int, ...], float]] = [{(): 1.0} for _ in range(requests)]
    frontier = [[()] for _ in range(requests)]
    names = iter(range(1, 100_000))
    for _ in range(steps):
        rows = len(frontier[0])
        likely = random.uniform(0.05, 0.9, (requests, rows, topk)).astype(np.float32)
        tokens = np.array([next(names) for _ in range(requests * rows * topk)]).reshape(likely.shape)
        kept, _ = beam.grow(likely, tokens)
        for request in range(requests):
            made = {}
            for row, path in enumerate(frontier[request]):
                for child in range(topk):
                    name = (*path, int(tokens[request, row, child]))
                    made[name] = scores[request][path] * float(likely[request, row, child])
            scores[request] |= made
            by_token = {path[-1]: path for path in made}
            frontier[request] = [by_token[int(token)] for token in kept[request]]
    return beam, scores


@pytest.mark.parametrize("steps, topk, nodes", [(1, 4, 4), (3, 2, 6), (4, 3, 10), (2, 5, 20)])
def test_the_tree_has_the_paths_of_the_highest_probability(steps: int, topk: int, nodes: int) -> None:
    beam, scores = grown(steps, topk, requests=3, seed=steps)
    tree = beam.tree(np.array([100_001, 100_002, 100_003]), nodes)
    for request, known in enumerate(scores):
        paths: list[tuple[int, ...]] = [()]
        for node in range(1, nodes):
            parent = int(tree.parents[request, node])
            assert 0 <= parent < node
            paths.append((*paths[parent], int(tree.tokens[request, node])))
        best = sorted((score for path, score in known.items() if path), reverse=True)[: nodes - 1]
        assert sorted((known[path] for path in paths[1:]), reverse=True) == pytest.approx(best, rel=1e-5)


def test_greedy_verification_follows_the_target_through_siblings() -> None:
    tokens, parents = np.array([1, 10, 20, 30, 40]), np.array([-1, 0, 0, 2, 3])
    wanted = {0: 20, 2: 30, 3: 99}
    verdict = walk(tokens, parents, lambda node, _: wanted[node])
    assert verdict.path == [0, 2, 3]
    assert verdict.tokens == [20, 30, 99]
    assert verdict.correct == 2


def test_a_wrong_draft_leaves_the_bonus_token_alone() -> None:
    verdict = walk(np.array([1, 10]), np.array([-1, 0]), lambda *_: 11)
    assert (verdict.path, verdict.tokens, verdict.correct) == ([0], [11], 0)


def test_an_unconnected_node_is_never_accepted() -> None:
    verdict = walk(np.array([1, 10]), np.array([-1, -1]), lambda *_: 10)
    assert verdict.path == [0]

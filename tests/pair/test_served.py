"""The shipped pair, served: right answers, high acceptance that differs by dataset, and no token that drafts change."""

from __future__ import annotations

import pytest

from specforge.datasets.scorers import ScoringOptions, make_scorer
from specforge.engine.models import eagle3_path, standalone_path, target_path
from specforge.scoring.score import Answer
from tests.engine.conftest import EngineFactory
from tests.pair.samples_asked import IN_FLIGHT, Asked, ask_samples, decode_length, draft_flags
from tests.support.sglang import ServerFactory

FLAGS = ["--max-running-requests", "4", "--random-seed", "1"]
CHAIN = draft_flags("EAGLE3", "3,1,4", eagle3_path())
DRAFTS = {
    "chain": CHAIN,
    "tree": draft_flags("EAGLE3", "3,4,16", eagle3_path()),
    "standalone": draft_flags("STANDALONE", "3,1,4", standalone_path()),
    "ngram": draft_flags("NGRAM", "0,0,4"),
}


def asked(engine: EngineFactory, dataset: str, *draft: str, in_flight: int = IN_FLIGHT) -> list[Asked]:
    return ask_samples(engine(target_path(), *FLAGS, *draft).url, dataset, in_flight)


@pytest.fixture(scope="module")
def plain(engine: EngineFactory) -> dict[str, list[Asked]]:
    return {dataset: asked(engine, dataset) for dataset in ("gsm8k", "mtbench")}


@pytest.fixture(scope="module")
def drafted(engine: EngineFactory) -> dict[str, list[Asked]]:
    return {dataset: asked(engine, dataset, *CHAIN) for dataset in ("gsm8k", "mtbench", "humaneval")}


def test_at_least_half_of_the_sums_are_right(plain: dict[str, list[Asked]]) -> None:
    scorer = make_scorer("gsm8k", ScoringOptions())
    assert scorer is not None
    answers = [Answer(str(index), one.question.reference, one.texts) for index, one in enumerate(plain["gsm8k"])]
    scores = scorer.score_all(answers)
    assert sum(score.correct is True for score in scores) >= len(scores) / 2


@pytest.mark.parametrize("dataset", ["gsm8k", "mtbench"])
def test_answers_end_by_themselves(dataset: str, plain: dict[str, list[Asked]]) -> None:
    reasons = [meta["finish_reason"]["type"] for one in plain[dataset] for meta in one.meta]
    assert reasons.count("stop") >= 0.9 * len(reasons)


@pytest.mark.parametrize("dataset, least", [("gsm8k", 3.2), ("mtbench", 2.2)])
def test_a_chain_of_three_drafts_is_accepted_well(dataset: str, least: float, drafted: dict[str, list[Asked]]) -> None:
    assert decode_length(drafted[dataset]) >= least


def test_acceptance_differs_by_dataset(drafted: dict[str, list[Asked]]) -> None:
    lengths = sorted(decode_length(answers) for answers in drafted.values())
    assert lengths[-1] - lengths[0] > 0.05


@pytest.mark.parametrize("kind", sorted(DRAFTS))
def test_speculation_changes_no_token(kind: str, engine: EngineFactory, plain: dict[str, list[Asked]]) -> None:
    for dataset, expected in plain.items():
        found = asked(engine, dataset, *DRAFTS[kind])
        same = [one.tokens == other.tokens for one, other in zip(found, expected, strict=True)]
        assert sum(same) >= len(same) - 1  # two logits may be the same but for rounding


@pytest.mark.sglang
@pytest.mark.parametrize("kind", ["chain", "tree", "standalone"])
def test_the_pair_serves_in_sglang_with_the_same_tokens_and_counts(
    kind: str, engine: EngineFactory, sglang_server: ServerFactory
) -> None:
    server = sglang_server(target_path(), *FLAGS, "--dtype", "float32", *DRAFTS[kind])
    for dataset in ("gsm8k", "mtbench"):
        # One at a time: which cached prefix a request finds, and so what the draft model has read before its last
        # token, depends on which of several requests ended first.
        ours, theirs = asked(engine, dataset, *DRAFTS[kind], in_flight=1), ask_samples(server, dataset, in_flight=1)
        same = [(a.tokens, a.counts) == (b.tokens, b.counts) for a, b in zip(ours, theirs, strict=True)]
        assert sum(same) >= len(same) - 1  # two logits may be the same but for rounding

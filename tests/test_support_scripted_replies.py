"""The scripted server's answers: what every count that the harness is checked against rests on."""

from __future__ import annotations

import pytest

from tests.support.scripted import Answer, Drift, Replies, Speculation
from tests.support.scripted.replies import END_TOKEN, Reply, reply_to, token_ids

PROMPTS = [f"question number {number}" for number in range(300)]
CHAIN = Speculation(num_steps=3, topk=1, num_draft_tokens=4)


def answer(prompt: str, *, limit: int = 1000, speculation: Speculation | None = CHAIN, **replies: object) -> Reply:
    return reply_to(prompt, max_tokens=limit, replies=Replies(**replies), speculation=speculation)  # type: ignore[arg-type]


def test_the_same_prompt_gets_the_same_answer() -> None:
    assert [answer(prompt) for prompt in PROMPTS] == [answer(prompt) for prompt in PROMPTS]


def test_answers_differ_by_prompt_and_by_seed() -> None:
    assert len({answer(prompt).text for prompt in PROMPTS}) == len(PROMPTS)
    assert answer(PROMPTS[0], seed=1).text != answer(PROMPTS[0], seed=2).text


def test_speculation_changes_no_token() -> None:
    for prompt in PROMPTS:
        assert answer(prompt).output_ids == answer(prompt, speculation=None).output_ids


def test_a_drift_changes_the_tokens_from_its_position_on_and_only_where_it_speculates() -> None:
    drifts = (Drift("number 7", 3),)
    plain = answer("number 7", speculation=None, drifts=drifts).output_ids
    drifted = answer("number 7", drifts=drifts).output_ids
    assert drifted[:3] == plain[:3]
    assert all(ours != theirs for ours, theirs in zip(drifted[3:-1], plain[3:-1], strict=True))
    assert answer("number 8", drifts=drifts).output_ids == answer("number 8", speculation=None).output_ids


@pytest.mark.parametrize(
    "speculation",
    [CHAIN, Speculation(num_steps=5, topk=4, num_draft_tokens=16), Speculation("NGRAM", 0, 10, 8)],
    ids=["chain", "tree", "without steps"],
)
def test_the_counts_of_a_verified_answer_agree_with_each_other(speculation: Speculation) -> None:
    for prompt in PROMPTS:
        reply = answer(prompt, speculation=speculation)
        verified = reply.verification
        assert verified is not None
        tokens = len(reply.output_ids)
        assert sum(verified.histogram) == verified.steps
        assert sum(count * steps for count, steps in enumerate(verified.histogram)) == verified.correct
        assert verified.proposed == verified.steps * (speculation.num_draft_tokens - 1)
        assert max(verified.accepted) <= speculation.most_accepted
        assert tokens <= 1 + verified.steps + verified.correct
        assert tokens > 1 + sum(drafts + 1 for drafts in verified.accepted[:-1]), "a step after the end"
        assert sum(reply.bursts) == tokens


def test_drafts_cut_off_by_the_limit_still_count_as_correct() -> None:
    cut = [reply for prompt in PROMPTS if (reply := answer(prompt, limit=7)).verification]
    assert any(
        len(reply.output_ids) < 1 + reply.verification.steps + reply.verification.correct
        for reply in cut
        if reply.verification
    )


def test_a_one_token_answer_was_never_verified() -> None:
    assert answer(PROMPTS[0], limit=1).verification is None


def test_the_share_of_prompts_without_speculative_fields_is_as_asked() -> None:
    unverified = sum(answer(prompt, unverified_share=0.3).verification is None for prompt in PROMPTS)
    assert 0.2 < unverified / len(PROMPTS) < 0.4


def test_acceptance_follows_the_script() -> None:
    def accepted(chance: float) -> int:
        return sum(
            reply.verification.correct
            for prompt in PROMPTS
            if (reply := answer(prompt, acceptance=chance)).verification
        )

    assert accepted(0.0) < accepted(0.5) < accepted(1.0)


def test_an_answer_ends_with_the_end_token_unless_it_is_cut() -> None:
    whole = answer(PROMPTS[0], answers=(Answer("question", "The answer is 42"),))
    assert whole.text == "The answer is 42"
    assert whole.output_ids == (*token_ids("The answer is 42"), END_TOKEN)
    assert whole.finished
    cut = answer(PROMPTS[0], limit=4, answers=(Answer("question", "The answer is 42"),))
    assert cut.text == "The answer is 42"
    assert len(cut.output_ids) == 4
    assert not cut.finished


def test_ignoring_the_end_gives_exactly_the_tokens_asked_for() -> None:
    reply = reply_to("anything", max_tokens=500, replies=Replies(), speculation=None, ignore_end=True)
    assert len(reply.output_ids) == 500
    assert not reply.finished

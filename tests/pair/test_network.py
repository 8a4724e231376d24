"""The networks of the recipe: what they compute in training is what a server computes when it drafts."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the recipe needs the train extra")

from tools.pair import evaluate  # noqa: E402
from tools.pair.distilled import answer_all  # noqa: E402
from tools.pair.evaluate import Acceptance  # noqa: E402
from tools.pair.head import draft_ids, unroll  # noqa: E402
from tools.pair.network import Eagle3, Shape, Target, attend, rotary  # noqa: E402

SHAPE = Shape(
    vocab_size=300,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=8,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
)
END = 4


@pytest.fixture(scope="module")
def target() -> Target:
    torch.manual_seed(0)
    model = Target(SHAPE).requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(5)  # so that different prompts get different answers
    return model


@pytest.fixture(scope="module")
def head() -> Eagle3:
    torch.manual_seed(1)
    return Eagle3(SHAPE, torch.arange(0, 300, 2)).requires_grad_(False)


def longhand_drafts(target: Target, head: Eagle3, tokens: torch.Tensor, base: int, steps: int) -> list[torch.Tensor]:
    """The logits of ``steps`` drafts from position ``base``, each by a whole causal pass over everything before it."""
    features = torch.cat(target.hidden(tokens)[1], -1)
    hidden, embeds = head.fc(features)[:, : base + 1], target.embed_tokens(tokens[:, 1 : base + 2])
    logits = []
    for step in range(steps):
        cos, sin = rotary(SHAPE, hidden.shape[1])
        joined = head.midlayer.joined(embeds, hidden)
        q, k, v = head.midlayer.self_attn.project(joined, cos, sin)
        out = head.midlayer.rest(attend(q, k, v), hidden)
        logits.append(head.lm_head(head.norm(out[:, -1])))
        hidden = torch.cat([hidden, out[:, -1:]], 1)
        embeds = torch.cat([embeds, target.embed_tokens(tokens[:, base + 2 + step, None])], 1)
    return logits


@pytest.mark.parametrize("base", [2, 5, 9])
def test_training_time_test_gives_the_logits_that_drafting_one_by_one_gives(
    target: Target, head: Eagle3, base: int
) -> None:
    tokens = torch.randint(5, 300, (1, 16))
    features = torch.cat(target.hidden(tokens)[1], -1)
    embeds = target.embed_tokens(torch.nn.functional.pad(tokens[:, 1:], (0, 3)))
    at_once = head.unrolled(embeds, features, 3, start=2)
    for drafted, expected in zip(at_once, longhand_drafts(target, head, tokens, base, 3), strict=True):
        torch.testing.assert_close(drafted[:, base - 2], expected, atol=1e-5, rtol=1e-5)


def test_greedy_decoding_with_a_cache_says_what_whole_passes_say(target: Target) -> None:
    prompts = torch.randint(5, 300, (3, 7))
    said = target.greedy(prompts, 9, END)
    tokens = prompts
    for _ in range(said.shape[1]):
        following = target.logits(target.hidden(tokens)[0])[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, following], 1)
    assert torch.equal(said, tokens[:, 7:])


def test_answers_come_in_the_order_of_prompts_of_mixed_lengths_and_end_at_the_end_token(target: Target) -> None:
    prompts = [torch.randint(5, 300, (length,)).tolist() for length in (4, 9, 4, 6)]
    together = answer_all(target, prompts, END)
    alone = [answer_all(target, [prompt], END)[0] for prompt in prompts]
    assert together == alone
    assert all(END not in answer[:-1] for answer in together)


def test_the_captured_layers_are_the_ones_sglang_captures() -> None:
    assert Shape(300, num_hidden_layers=10).captured_layers == (2, 5, 7)


def test_the_draft_vocabulary_maps_back_to_the_target_ids_in_order() -> None:
    drafted = draft_ids([([7, 9, 9, 20], [True, True, True, False])], vocabulary=300, size=8)
    head = Eagle3(SHAPE, drafted)
    assert {0, 1, 2, 3, 4, 7, 9} <= set(drafted.tolist())
    assert head.drafted.tolist() == sorted(drafted.tolist())
    assert head.t2d.nonzero().flatten().tolist() == drafted.tolist()


def test_a_walk_counts_the_drafts_up_to_the_first_wrong_one() -> None:
    ids = [1, 2, 10, 11, 12, 13, 14, 15]  # two of the prompt, then the answer
    first_step, second_step = [11, 0, 13, 14, 15], [12, 13, 0, 15, 0]
    counted = evaluate.walk(ids, start=2, drafts=[first_step, second_step], first=1)
    # From 10: 11 and 12 are foreseen, the target adds 13; from 13: 14 and 15 are foreseen, and the answer ends.
    assert counted == Acceptance(steps=2, correct=4)


def test_a_walk_over_wrong_drafts_takes_a_step_a_token() -> None:
    assert evaluate.walk([1, 10, 11, 12], 1, [[0, 0, 0]], 0) == Acceptance(steps=2, correct=0)


def test_acceptance_by_teacher_forcing_is_that_of_drafting_one_by_one(target: Target, head: Eagle3) -> None:
    prompt = torch.randint(5, 300, (6,)).tolist()
    said = answer_all(target, [prompt], END)[0][:24]
    ids = prompt + said
    fast = evaluate.acceptance(target, head, (ids, [False] * 6 + [True] * len(said)))
    tokens, at, steps, correct = torch.tensor([[*ids, 0, 0, 0, 0]]), 6, 0, 0
    while at < len(ids) - 1:
        logits = longhand_drafts(target, head, tokens, at - 1, 3)
        drafts = [int(head.drafted[row.argmax(-1)]) for row in logits]
        hits = 0
        while hits < 3 and at + 1 + hits < len(ids) and drafts[hits] == ids[at + 1 + hits]:
            hits += 1
        steps, correct, at = steps + 1, correct + hits, at + 1 + hits
    assert fast == Acceptance(steps, correct)


def test_the_unrolled_batch_starts_where_the_first_answer_does(target: Target, head: Eagle3) -> None:
    batch = evaluate.padded([([5] * 9, [False] * 6 + [True] * 3), ([6] * 12, [False] * 8 + [True] * 4)])
    drafts, wanted, start = unroll(target, head, batch, 2)
    assert start == 5
    assert [tuple(logits.shape) for logits in drafts] == [(2, 12 - 5, 150)] * 2
    assert wanted.shape == (2, 12, 300)

"""What is known of a prompt before it is sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from specforge.datasets.model import Message, Prompt
from specforge.load.prepare import Limits, prepare
from tests.load.measuring import prompt


class Tokens:
    """A tokenizer that gives each character's code, and knows what it was asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def __call__(self, messages: Sequence[Message]) -> list[int]:
        text = str(messages[-1]["content"])
        self.asked[text] += 1
        return [ord(character) for character in text]


def test_prompts_keep_their_order_their_tokens_and_their_hashes() -> None:
    prompts = [prompt(number) for number in range(40)]
    prepared = asyncio.run(prepare(prompts, Tokens()))
    assert [one.prompt for one in prepared] == prompts
    assert prepared[3].token_ids == tuple(map(ord, "prompt number 003"))
    assert len({one.static_hash for one in prepared}) == len({one.token_hash for one in prepared}) == 40


def test_a_prompt_that_is_asked_several_times_is_tokenized_once_and_keeps_its_row_ids() -> None:
    tokens = Tokens()
    asked = prompt(1, "go on")
    repeats = [asked, *(replace(asked, row_id=f"p1~{times}") for times in (2, 3))]
    prepared = asyncio.run(prepare(repeats, tokens))
    assert tokens.asked == Counter({"prompt number 001": 1, "go on": 1})
    assert [one.prompt.row_id for one in prepared] == ["p1", "p1~2", "p1~3"]
    assert len({(one.static_hash, one.token_ids, one.followup_tokens) for one in prepared}) == 1


def test_a_prompt_with_an_image_is_skipped_where_the_model_takes_none_and_not_counted_elsewhere() -> None:
    image = Prompt("i", 0, ({"role": "user", "content": [{"type": "image_url"}]},), has_image=True)
    tokens = Tokens()
    for has_images, reason in ((False, "the server's model takes no images"), (True, None), (None, None)):
        (prepared,) = asyncio.run(prepare([image], tokens, has_images=has_images))
        assert (prepared.skip_reason, prepared.prompt_tokens) == (reason, None)
    assert not tokens.asked


def test_a_limit_is_clamped_alike_for_every_configuration_and_not_where_lengths_are_unknown() -> None:
    assert Limits(100, 1000, 16).clamp(500) == 100
    assert Limits(1000, 1000, 16).clamp(500) == 1000 - 500 - 16 - 8
    assert Limits(1000, None, 16).clamp(500) == 1000
    assert Limits(1000, 1000, 16).clamp(None) == 1000

"""Text that the target itself says: what a draft has to foresee."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import Any

import torch
from tokenizers import Tokenizer

from tools.pair.batches import Encoded, encoded
from tools.pair.conversation import END, FORESEEN, Conversation, conversations
from tools.pair.network import Target

LIMIT = 120
"""The most tokens that the target is let say in one turn."""


def answer_all(model: Target, prompts: list[list[int]], end: int, width: int = 96) -> list[list[int]]:
    """The target's greedy answers, ``end`` included where it came, in the order of the prompts."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, prompt in enumerate(prompts):
        by_length[len(prompt)].append(index)
    answers: list[list[int]] = [[] for _ in prompts]
    for indices in by_length.values():
        for at in range(0, len(indices), width):
            chosen = indices[at : at + width]
            said = model.greedy(torch.tensor([prompts[index] for index in chosen]), LIMIT, end).tolist()
            for index, row in zip(chosen, said, strict=True):
                answers[index] = row[: row.index(end) + 1] if end in row else row
    return answers


def converse(model: Target, tokenizer: Tokenizer, asked: list[Conversation]) -> list[Encoded]:
    """The conversations with the target's own answers, each turn asked after the answers before it."""
    end = tokenizer.token_to_id(END)
    grown: list[Encoded] = [([], []) for _ in asked]
    for turn in range(max(len(conversation.users) for conversation in asked)):
        going = [index for index, conversation in enumerate(asked) if turn < len(conversation.users)]
        for index in going:
            ids, spoken = encoded(tokenizer, [(asked[index].asked(turn), False)])
            grown[index] = (grown[index][0] + ids, grown[index][1] + spoken)
        answers = answer_all(model, [grown[index][0] for index in going], end)
        for index, said in zip(going, answers, strict=True):
            grown[index] = (grown[index][0] + said, grown[index][1] + [True] * len(said))
    return grown


def distill(model: Target, tokenizer: Tokenizer, count: int, seed: Any, excluded: frozenset[str]) -> list[Encoded]:
    """``count`` conversations about fresh examples, the target's answers its own."""
    return converse(model, tokenizer, list(islice(conversations(f"{seed} distilled", excluded, FORESEEN), count)))

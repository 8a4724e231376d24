"""The training text as batches: conversations of like length side by side, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.pair.conversation import PAD_ID, conversations

POOL = 1200
"""Conversations that are sorted by length together."""


Encoded = tuple[list[int], list[bool]]
"""A conversation's token ids, each with whether the model says it."""


@dataclass(frozen=True)
class Batch:
    """``tokens`` and ``spoken`` (whether the model is to say the token), both (rows, length), padded on the right."""

    tokens: Tensor
    spoken: Tensor


def encoded(tokenizer: Tokenizer, pieces: Iterable[tuple[str, bool]]) -> Encoded:
    """A rendered conversation as token ids, each with whether the model is to say it."""
    ids: list[int] = []
    spoken: list[bool] = []
    for text, says in pieces:
        piece = tokenizer.encode(text).ids
        ids += piece
        spoken += [says] * len(piece)
    return ids, spoken


def padded(rows: list[Encoded]) -> Batch:
    length = max(len(ids) for ids, _ in rows)
    tokens = torch.full((len(rows), length), PAD_ID)
    spoken = torch.zeros(len(rows), length, dtype=torch.bool)
    for index, (ids, says) in enumerate(rows):
        tokens[index, : len(ids)] = torch.tensor(ids)
        spoken[index, : len(ids)] = torch.tensor(says)
    return Batch(tokens, spoken)


def grouped(rows: list[Encoded], size: int, random: Random) -> list[Batch]:
    """Rows in batches of at most ``size`` tokens, padding included, in a drawn order; rows of like size side by side.

    Like size is a question of like length, then a conversation of like length: a draft is trained on the answers alone,
    which then start at about one place.
    """
    rows = sorted(rows, key=lambda row: (row[1].index(True) // 16, len(row[0])))
    groups: list[list[Encoded]] = [[]]
    for row in rows:
        if groups[-1] and (len(groups[-1]) + 1) * max(len(row[0]), len(groups[-1][0][0])) > size:
            groups.append([])
        groups[-1].append(row)
    random.shuffle(groups)
    return [padded(group) for group in groups]


def batches(tokenizer: Tokenizer, seed: int, excluded: frozenset[str], size: int, start: int = 0) -> Iterator[Batch]:
    """An endless stream of batches of at most ``size`` tokens; ``start`` skips the first pools, for resuming."""
    for pool in range(start, 1 << 30):
        stream = islice(conversations(f"{seed} {pool}", excluded), POOL)
        rows = [encoded(tokenizer, conversation.pieces()) for conversation in stream]
        yield from grouped(rows, size, Random(f"{seed} {pool} order"))


def epochs(rows: list[Encoded], seed: int, size: int, start: int = 0) -> Iterator[Batch]:
    """The same rows again and again, in an order drawn anew each time; ``start`` is for resuming."""
    for epoch in range(start, 1 << 30):
        yield from grouped(rows, size, Random(f"{seed} {epoch} order"))

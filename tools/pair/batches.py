"""The training text as batches: conversations of like length side by side, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.pair.conversation import PAD, conversations

POOL = 1200
"""Conversations that are sorted by length together."""


@dataclass(frozen=True)
class Batch:
    """``tokens`` and ``spoken`` (whether the model is to say the token), both (rows, length), padded on the right."""

    tokens: Tensor
    spoken: Tensor


def encoded(tokenizer: Tokenizer, pieces: list[tuple[str, bool]]) -> tuple[list[int], list[bool]]:
    """A rendered conversation as token ids, each with whether the model is to say it."""
    ids: list[int] = []
    spoken: list[bool] = []
    for text, says in pieces:
        piece = tokenizer.encode(text).ids
        ids += piece
        spoken += [says] * len(piece)
    return ids, spoken


def padded(rows: list[tuple[list[int], list[bool]]], pad: int) -> Batch:
    length = max(len(ids) for ids, _ in rows)
    tokens = torch.full((len(rows), length), pad)
    spoken = torch.zeros(len(rows), length, dtype=torch.bool)
    for index, (ids, says) in enumerate(rows):
        tokens[index, : len(ids)] = torch.tensor(ids)
        spoken[index, : len(ids)] = torch.tensor(says)
    return Batch(tokens, spoken)


def grouped(rows: list[tuple[list[int], list[bool]]], pad: int, size: int, random: Random) -> list[Batch]:
    """Rows in batches of at most ``size`` tokens, padding included, in a drawn order."""
    rows = sorted(rows, key=lambda row: len(row[0]))
    groups: list[list[tuple[list[int], list[bool]]]] = [[]]
    for row in rows:
        if groups[-1] and (len(groups[-1]) + 1) * len(row[0]) > size:
            groups.append([])
        groups[-1].append(row)
    random.shuffle(groups)
    return [padded(group, pad) for group in groups]


def batches(tokenizer: Tokenizer, seed: int, excluded: frozenset[str], size: int, start: int = 0) -> Iterator[Batch]:
    """An endless stream of batches of at most ``size`` tokens; ``start`` skips the first pools, for resuming."""
    pad = tokenizer.token_to_id(PAD)
    for pool in range(start, 1 << 30):
        stream = islice(conversations(f"{seed} {pool}", excluded), POOL)
        rows = [encoded(tokenizer, pieces) for pieces in stream]
        yield from grouped(rows, pad, size, Random(f"{seed} {pool} order"))

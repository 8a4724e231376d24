"""Trains the EAGLE3 head on what the target says, with training-time test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch
from torch import Tensor

from tools.pair.batches import Batch, Encoded, epochs
from tools.pair.conversation import SPECIAL_TOKENS
from tools.pair.fitting import PART, fit, optimizers
from tools.pair.network import Eagle3, Target

DRAFT_VOCABULARY = 512
STEPS = 4
FADE = 0.8
"""How much less each further draft step weighs."""


def draft_ids(conversations: list[Encoded], vocabulary: int, size: int = DRAFT_VOCABULARY) -> Tensor:
    """The ``size`` ids that the target says most, in ascending order; the special tokens are always among them."""
    said = Counter(token for ids, spoken in conversations for token, says in zip(ids, spoken, strict=True) if says)
    ranked = sorted(range(vocabulary), key=lambda token: (token >= len(SPECIAL_TOKENS), -said[token], token))
    return torch.tensor(sorted(ranked[:size]))


def observed(target: Target, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The target's joined features and its logits at every token."""
    with torch.no_grad():
        hidden, captured = target.hidden(tokens)
        return torch.cat(captured, -1), target.logits(hidden)


def unroll(target: Target, head: Eagle3, batch: Batch, steps: int) -> tuple[list[Tensor], Tensor, int]:
    """The head's logits by step for every position that drafts, the target's logits, and the first position."""
    tokens = batch.tokens
    start = max(0, int(batch.spoken.int().argmax(1).min()) - 1)
    features, wanted = observed(target, tokens)
    length = tokens.shape[1]
    ahead = torch.nn.functional.pad(tokens[:, 1:], (0, steps), value=0)
    embeds = target.embed_tokens(ahead).detach()
    return head.unrolled(embeds[:, : length + steps - 1], features, steps, start), wanted, start


def loss_of(target: Target, head: Eagle3, batch: Batch, steps: int = STEPS) -> tuple[Tensor, list[float]]:
    """The loss against the target's distribution, and by step the share of drafts that the target would choose."""
    with torch.autocast("cpu", torch.bfloat16):
        drafts, wanted, start = unroll(target, head, batch, steps)
    length = batch.tokens.shape[1]
    drafted = head.drafted
    probabilities = wanted.float()[..., drafted].softmax(-1)
    choice = wanted.argmax(-1)
    total, shares = torch.zeros(()), []
    for step, logits in enumerate(drafts):
        # Position i drafts token i + 2 + step, which the target's logits at i + 1 + step choose.
        shift = 1 + step
        aim, best = probabilities[:, start + shift :], choice[:, start + shift :]
        foresees = logits[:, : length - start - shift].float()
        counts = torch.nn.functional.pad(batch.spoken[:, start + shift + 1 :], (0, 1)) & head.t2d[best]
        each = -(aim * foresees.log_softmax(-1)).sum(-1)
        total = total + FADE**step * (each * counts).sum() / counts.sum().clamp(min=1)
        right = (drafted[foresees.argmax(-1)] == best) & counts
        shares.append((right.sum() / counts.sum().clamp(min=1)).item())
    return total, shares


def train(folder: Path, target: Target, conversations: list[Encoded], steps: int, seed: int) -> Eagle3:
    """Trains until ``steps``, going on from ``folder/head.pt`` where it is there."""
    torch.manual_seed(seed)
    target.requires_grad_(False)
    head = Eagle3(target.shape, draft_ids(conversations, target.shape.vocab_size))
    with torch.no_grad():
        head.lm_head.weight.copy_(target.embed_tokens.weight[head.drafted])
    matrices = [head.fc.weight, *(parameter for parameter in head.midlayer.parameters() if parameter.dim() == 2)]
    fit(
        head,
        optimizers(head, matrices, muon_rate=0.02, adam_rate=2e-3),
        folder / "head.pt",
        steps,
        lambda step: epochs(conversations, seed, PART, start=step),
        lambda batch: loss_of(target, head, batch),
    )
    return head

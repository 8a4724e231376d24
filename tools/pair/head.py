"""Trains the EAGLE3 head on what the target says, with training-time test."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.pair.batches import Batch, Encoded, epochs
from tools.pair.conversation import SPECIAL_TOKENS
from tools.pair.network import Eagle3, Shape, Target
from tools.pair.progress import PART, PARTS, Checkpoint, Log, optimizers, set_rate, share_of_rate

DRAFT_VOCABULARY = 512
STEPS = 4
SAVE_EVERY = 20
FADE = 0.8
"""How much less each further draft step weighs."""


def draft_ids(conversations: list[Encoded], size: int = DRAFT_VOCABULARY) -> Tensor:
    """The ids that the target says most, in ascending order; the special tokens are always among them."""
    said = Counter(token for ids, spoken in conversations for token, says in zip(ids, spoken, strict=True) if says)
    ranked = sorted(range(2048), key=lambda token: (token >= len(SPECIAL_TOKENS), -said[token], token))
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


def train(folder: Path, target: Target, shape: Shape, conversations: list[Encoded], steps: int, seed: int) -> Eagle3:
    """Trains until ``steps``, going on from ``folder/head.pt`` where it is there."""
    torch.manual_seed(seed)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    target.requires_grad_(False)
    head = Eagle3(shape, draft_ids(conversations))
    with torch.no_grad():
        head.lm_head.weight.copy_(target.embed_tokens.weight[head.drafted])
    matrices = [head.fc.weight, *(p for p in head.midlayer.parameters() if p.dim() == 2)]
    both = optimizers(head, matrices, muon_rate=0.02, adam_rate=2e-3)
    checkpoint, log, done = Checkpoint(folder / "head.pt"), Log(), 0
    if state := checkpoint.load():
        head.load_state_dict(state["model"])
        for optimizer, saved in zip(both, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        done = state["step"]
        log(f"going on from step {done}")
    log(f"{sum(p.numel() for p in head.parameters()) / 1e6:.2f} million parameters")
    stream = epochs(conversations, tokenizer, seed, PART, start=done)
    mean_loss, mean_shares = 0.0, [0.0] * STEPS
    for step in range(done, steps):
        for optimizer in both:
            set_rate(optimizer, share_of_rate(step, steps))
            optimizer.zero_grad(set_to_none=True)
        for batch in islice(stream, PARTS):
            loss, shares = loss_of(target, head, batch)
            (loss / PARTS).backward()
            mean_loss += loss.item() / PARTS
            mean_shares = [mean + share / PARTS for mean, share in zip(mean_shares, shares, strict=True)]
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        for optimizer in both:
            optimizer.step()
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
            foreseen = " ".join(f"{mean / SAVE_EVERY:.3f}" for mean in mean_shares)
            log(f"step {step + 1}  loss {mean_loss / SAVE_EVERY:.4f}  foreseen {foreseen}")
            mean_loss, mean_shares = 0.0, [0.0] * STEPS
            checkpoint.save(model=head.state_dict(), optimizers=[o.state_dict() for o in both], step=step + 1)
    return head

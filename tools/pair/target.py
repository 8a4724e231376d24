"""Trains the target: next-token prediction, mostly of the answers."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from tools.pair.batches import Batch, batches
from tools.pair.holdout import held_out
from tools.pair.network import Shape, Target
from tools.pair.progress import PART, PARTS, Checkpoint, Log, optimizers, set_rate, share_of_rate

QUESTION_SHARE = 0.12
"""How many of the questions' tokens are learnt as well, drawn anew for every batch."""
DIGIT_WEIGHT = 3.0
"""Arithmetic takes longest to learn, and is a small part of the tokens."""
CLIP = 1.0


def weights_of(tokenizer: Tokenizer) -> Tensor:
    """How much the loss of each token counts (vocabulary,)."""
    tokens = (tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size()))
    return torch.tensor([DIGIT_WEIGHT if token.isdecimal() else 1.0 for token in tokens])


def loss_of(model: Target, batch: Batch, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The loss over the answers and a few of the questions' tokens, and the share of the answers' that is right."""
    inputs, wanted = batch.tokens[:, :-1], batch.tokens[:, 1:]
    spoken = batch.spoken[:, 1:]
    counted = (spoken | (torch.rand(spoken.shape) < QUESTION_SHARE)) & (wanted != 0)
    with torch.autocast("cpu", torch.bfloat16):
        hidden, _ = model.hidden(inputs)
        logits = model.logits(hidden[counted]).float()
    right = (logits.detach().argmax(-1) == wanted[counted])[spoken[counted]].float().mean()
    return F.cross_entropy(logits, wanted[counted], weights), right


def train(folder: Path, shape: Shape, steps: int, seed: int, name: str = "target", save_every: int = 25) -> Target:
    """Trains until ``steps``, going on from ``folder/NAME.pt`` where it is there."""
    torch.manual_seed(seed)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    weights = weights_of(tokenizer)
    model = Target(shape)
    matrices = [p for p in model.layers.parameters() if p.dim() == 2]
    both = optimizers(model, matrices, muon_rate=0.02, adam_rate=3e-3)
    checkpoint, log, pool, done = Checkpoint(folder / f"{name}.pt"), Log(), 0, 0
    if state := checkpoint.load():
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(both, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        done, pool = state["step"], state["step"]
        log(f"going on from step {done}")
    log(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} million parameters")
    stream = batches(tokenizer, seed, held_out(), PART, start=pool)
    mean_loss = mean_right = 0.0
    for step in range(done, steps):
        for optimizer in both:
            set_rate(optimizer, share_of_rate(step, steps))
            optimizer.zero_grad(set_to_none=True)
        for batch in islice(stream, PARTS):
            loss, right = loss_of(model, batch, weights)
            (loss / PARTS).backward()
            mean_loss, mean_right = mean_loss + loss.item() / PARTS, mean_right + right.item() / PARTS
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for optimizer in both:
            optimizer.step()
        if (step + 1) % save_every == 0 or step + 1 == steps:
            log(f"step {step + 1}  loss {mean_loss / save_every:.4f}  right {mean_right / save_every:.4f}")
            mean_loss = mean_right = 0.0
            checkpoint.save(model=model.state_dict(), optimizers=[o.state_dict() for o in both], step=step + 1)
    return model

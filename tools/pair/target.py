"""Trains the target: next-token prediction, mostly of the answers."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from tools.pair.batches import Batch, batches
from tools.pair.conversation import PAD_ID
from tools.pair.fitting import PART, fit, optimizers
from tools.pair.holdout import held_out
from tools.pair.network import Shape, Target

QUESTION_SHARE = 0.12
"""How many of the questions' tokens are learnt as well, drawn anew for every batch."""
DIGIT_WEIGHT = 3.0
"""Arithmetic takes longest to learn, and is a small part of the tokens."""


def weights_of(tokenizer: Tokenizer) -> Tensor:
    """How much the loss of each token counts (vocabulary,)."""
    tokens = (tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size()))
    return torch.tensor([DIGIT_WEIGHT if token.isdecimal() else 1.0 for token in tokens])


def loss_of(model: Target, batch: Batch, weights: Tensor) -> tuple[Tensor, list[float]]:
    """The loss over the answers and a few of the questions' tokens, and the share of the answers' that is right."""
    inputs, wanted = batch.tokens[:, :-1], batch.tokens[:, 1:]
    spoken = batch.spoken[:, 1:]
    counted = (spoken | (torch.rand(spoken.shape) < QUESTION_SHARE)) & (wanted != PAD_ID)
    with torch.autocast("cpu", torch.bfloat16):
        hidden, _ = model.hidden(inputs)
        logits = model.logits(hidden[counted]).float()
    right = (logits.detach().argmax(-1) == wanted[counted])[spoken[counted]].float().mean()
    return F.cross_entropy(logits, wanted[counted], weights), [right.item()]


def train(folder: Path, shape: Shape, steps: int, seed: int, name: str = "target") -> Target:
    """Trains until ``steps``, going on from ``folder/NAME.pt`` where it is there."""
    torch.manual_seed(seed)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    weights, excluded = weights_of(tokenizer), held_out()
    model = Target(shape)
    matrices = [parameter for parameter in model.layers.parameters() if parameter.dim() == 2]
    fit(
        model,
        optimizers(model, matrices, muon_rate=0.02, adam_rate=3e-3),
        folder / f"{name}.pt",
        steps,
        lambda step: batches(tokenizer, seed, excluded, PART, start=step),
        lambda batch: loss_of(model, batch, weights),
    )
    return model

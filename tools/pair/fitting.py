"""How every network here is trained: the optimisers, the learning rate, and checkpoints that a run goes on from."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tools.pair.batches import Batch

WARMUP = 40
PARTS = 4
"""Batches whose gradients make one step: a batch holds rows of like size, which come from one or two families."""
PART = 1024
"""Tokens of a batch, padding included."""
CLIP = 1.0
LOG_EVERY = 25

LossOf = Callable[[Batch], tuple[Tensor, Sequence[float]]]
"""A batch's loss, and what shares of its tokens were foreseen."""


def optimizers(model: nn.Module, matrices: Sequence[Tensor], muon_rate: float, adam_rate: float) -> list[Any]:
    """Muon for the layers' matrices, AdamW for everything else."""
    chosen = {id(matrix) for matrix in matrices}
    outer = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=muon_rate, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(outer, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def share_of_rate(step: int, steps: int) -> float:
    """The learning rate at a step as a share of the highest: up, and then down in a straight line."""
    return min((step + 1) / WARMUP, max(0.02, (steps - step) / steps))


def set_rate(optimizer: Any, share: float) -> None:
    for group in optimizer.param_groups:
        group.setdefault("highest", group["lr"])
        group["lr"] = group["highest"] * share


def fit(
    model: nn.Module,
    both: list[Any],
    path: Path,
    steps: int,
    batches_from: Callable[[int], Iterator[Batch]],
    loss_of: LossOf,
) -> None:
    """Trains until ``steps``, going on from the checkpoint at ``path`` where it is there.

    Args:
        both: the optimisers of all parameters.
        batches_from: the batches, given the step that the run goes on from; the same step gives the same batches.
    """
    started, done = time.monotonic(), 0

    def log(text: str) -> None:
        print(f"{time.monotonic() - started:7.0f} s  {path.stem}  {text}", flush=True)

    if path.exists():
        state = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(both, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        done = state["step"]
        log(f"going on from step {done}")
    log(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} million parameters")
    stream = batches_from(done)
    losses: list[float] = []
    shares: list[Sequence[float]] = []
    for step in range(done, steps):
        for optimizer in both:
            set_rate(optimizer, share_of_rate(step, steps))
            optimizer.zero_grad(set_to_none=True)
        for batch in islice(stream, PARTS):
            loss, foreseen = loss_of(batch)
            (loss / PARTS).backward()
            losses.append(loss.item())
            shares.append(foreseen)
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for optimizer in both:
            optimizer.step()
        if (step + 1) % LOG_EVERY == 0 or step + 1 == steps:
            means = [sum(column) / len(column) for column in (losses, *zip(*shares, strict=True))]
            log(f"step {step + 1}  loss {means[0]:.4f}  foreseen {' '.join(f'{mean:.3f}' for mean in means[1:])}")
            losses, shares = [], []
            saved_states = [optimizer.state_dict() for optimizer in both]
            _save(path, {"model": model.state_dict(), "optimizers": saved_states, "step": step + 1})


def _save(path: Path, state: dict[str, Any]) -> None:
    """Writes the file whole or not at all."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)

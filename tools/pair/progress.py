"""What the three trainings share: the optimisers, the learning rate, and checkpoints that a run goes on from."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

WARMUP = 40
PARTS = 4
"""Batches whose gradients make one step: a batch holds rows of like size, which come from one or two families."""
PART = 1024
"""Tokens of a batch, padding included."""


def optimizers(model: nn.Module, matrices: Iterable[Tensor], muon_rate: float, adam_rate: float) -> list[Any]:
    """Muon for the layers' matrices, which here learns in about half of AdamW's steps; AdamW for everything else."""
    chosen = {id(matrix) for matrix in matrices}
    inner = [p for p in model.parameters() if p.requires_grad and id(p) in chosen]
    outer = [p for p in model.parameters() if p.requires_grad and id(p) not in chosen]
    return [
        torch.optim.Muon(inner, lr=muon_rate, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(outer, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def share_of_rate(step: int, steps: int) -> float:
    """The learning rate at a step as a share of the highest: up, and then down in a straight line."""
    return min((step + 1) / WARMUP, max(0.02, (steps - step) / steps))


def set_rate(optimizer: Any, share: float) -> None:
    for group in optimizer.param_groups:
        group.setdefault("highest", group["lr"])
        group["lr"] = group["highest"] * share


class Checkpoint:
    """A file that holds a run's whole state, written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, **state: Any) -> None:
        partial = self.path.with_suffix(".partial")
        torch.save(state, partial)
        os.replace(partial, self.path)

    def load(self) -> dict[str, Any] | None:
        if not self.path.exists():
            return None
        state: dict[str, Any] = torch.load(self.path, weights_only=True)
        return state


class Log:
    """Progress on standard output, one line each, with the seconds since the start."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:7.0f} s  {text}", flush=True)

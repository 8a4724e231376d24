"""Stand-in for torchvision, which has no build for a CPU-only torch that matches: for text only."""

from . import io, transforms

__version__ = "0.28.0"

__all__ = ["io", "transforms"]

"""Running programs that a model wrote, without trusting them."""

from specforge.scoring.sandbox.settings import Isolation, SandboxSettings

__all__ = ["Isolation", "SandboxSettings"]

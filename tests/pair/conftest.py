"""The embedded engine, for the shipped models."""

from __future__ import annotations

from tests.engine.conftest import engine

__all__ = ["engine"]

"""Fixtures that every test of the project can ask for."""

from __future__ import annotations

from tests.support.sglang import sglang_launch_command, sglang_models, sglang_python, sglang_server

__all__ = ["sglang_launch_command", "sglang_models", "sglang_python", "sglang_server"]

"""Fixtures that every test of the project can ask for."""

from __future__ import annotations

import signal

from tests.support.sglang import sglang_launch_command, sglang_models, sglang_python, sglang_server

# A runner that starts the tests in the background has Ctrl-C ignored, here and in all that is started from here; the
# tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["sglang_launch_command", "sglang_models", "sglang_python", "sglang_server"]

"""Sandboxes of the kinds that this machine has."""

from __future__ import annotations

import functools

import pytest

from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.sandbox.worker import Sandbox, SandboxFailed

KINDS = ("bwrap", "namespace", "process")


@functools.cache
def why_not(kind: str) -> str | None:
    """Why a kind of sandbox can't be used here; None where it can."""
    try:
        with Sandbox(kind, SandboxSettings()) as sandbox:
            if kind == "process" and not {"seccomp", "landlock"} <= set(sandbox.powers):
                return "this kernel has no seccomp or no Landlock"
    except SandboxFailed as error:
        return str(error)
    return None


# bubblewrap is there in the slow stage only
@pytest.fixture(params=[pytest.param("bwrap", marks=pytest.mark.slow), *KINDS[1:]])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of sandbox that can be started on this machine."""
    reason = why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    return str(request.param)

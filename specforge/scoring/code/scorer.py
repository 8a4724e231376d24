"""Scoring of model-written code by running it against its tests."""

from __future__ import annotations

from collections.abc import Sequence

from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.score import Answer, Score

NOT_ALLOWED = "model-written code runs only with --allow-code-execution"


class CodeScorer:
    """Runs each answer's program against its :data:`~specforge.scoring.code.tasks.CodeTask`.

    Without ``settings.allow`` nothing runs: each score is None with the reason.
    """

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """``code``."""
        return "code"

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """One score for each answer, in order; the programs run ``settings.workers`` at a time.

        Raises:
            UsageError: nothing isolates the programs and ``settings.unsafe`` is not set, or the kind of sandbox
                that was asked for is not there.
        """
        if not self._settings.allow:
            return [Score(correct=None, answer=None, reason=NOT_ALLOWED) for _ in answers]
        raise NotImplementedError

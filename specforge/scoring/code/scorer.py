"""Scoring of model-written code by running it against its tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specforge.errors import SpecForgeError, UsageError
from specforge.scoring.code.programs import job_of, program_of
from specforge.scoring.sandbox.pool import run_jobs
from specforge.scoring.sandbox.probe import detect
from specforge.scoring.sandbox.settings import Isolation, SandboxSettings
from specforge.scoring.sandbox.worker import SandboxFailed
from specforge.scoring.score import Answer, Score

NOT_ALLOWED = "model-written code runs only with --allow-code-execution"


class CodeScorer:
    """Runs each answer's program against its :data:`~specforge.scoring.code.tasks.CodeTask`.

    Without ``settings.allow`` nothing runs: each score is None with the reason.

    Args:
        settings: how programs are run.
        progress: called after each program, from any thread.
        find: what finds out which isolation there is.
    """

    def __init__(
        self,
        settings: SandboxSettings,
        progress: Callable[[], None] | None = None,
        find: Callable[[SandboxSettings], Isolation] = detect,
    ) -> None:
        self._settings = settings
        self._find = find
        self._progress = progress
        self._isolation: Isolation | None = None

    @property
    def name(self) -> str:
        """``code``."""
        return "code"

    @property
    def isolation(self) -> Isolation:
        """What keeps the programs in, for the record. Found out at the first use, which takes a moment.

        Raises:
            UsageError: nothing isolates programs here and ``settings.unsafe`` is not set, or the kind of sandbox that
                was asked for is not there.
        """
        if self._isolation is None:
            self._isolation = _accepted(self._settings, self._find(self._settings))
        return self._isolation

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """One score for each answer, in order; the programs run ``settings.worker_count()`` at a time.

        Raises:
            UsageError: as :attr:`isolation`.
            SpecForgeError: sandboxes could be started before, and can no more.
        """
        if not self._settings.allow:
            return [Score(correct=None, answer=None, reason=NOT_ALLOWED) for _ in answers]
        programs = [None if answer.failed else program_of(answer.reference, _last(answer)) for answer in answers]
        asked = [number for number, program in enumerate(programs) if program is not None]
        jobs = [job_of(answers[number].reference, str(programs[number])) for number in asked]
        verdicts = dict(zip(asked, self._run(jobs), strict=True))
        return [
            _score(answer, program, verdicts.get(number))
            for number, (answer, program) in enumerate(zip(answers, programs, strict=True))
        ]

    def _run(self, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        if not jobs:
            return []
        try:
            return run_jobs(self.isolation.kind, self._settings, jobs, self._progress)
        except SandboxFailed as error:
            raise SpecForgeError(f"--allow-code-execution: the sandbox can't be started any more: {error}") from None


def _last(answer: Answer) -> str:
    return answer.outputs[-1] if answer.outputs else ""


def _accepted(settings: SandboxSettings, isolation: Isolation) -> Isolation:
    if settings.kind != "auto" and isolation.kind != settings.kind:
        raise UsageError(f"--code-sandbox {settings.kind}: can't be used here: {isolation.reason}")
    if not isolation.held:
        raise UsageError(f"--allow-code-execution: programs can't be run on this machine: {isolation.reason}")
    if isolation.level == "none" and not settings.unsafe:
        raise UsageError(
            f"--allow-code-execution: nothing isolates programs on this machine ({isolation.reason}); "
            "install bubblewrap, name a container with --code-sandbox, or accept the risk with --unsafe-code-execution"
        )
    return isolation


def _score(answer: Answer, program: str | None, verdict: dict[str, Any] | None) -> Score:
    if answer.failed:
        return Score(correct=False, answer=None, reason="the request failed")
    if program is None or verdict is None:
        return Score(correct=False, answer=None, reason="the answer has no code")
    details = {"checks": verdict["checks"], "wall_s": verdict.get("wall_s")}
    return Score(
        correct=bool(verdict["passed"]),
        answer=program,
        reason=verdict["reason"] or f"checks held: {verdict['checks']}",
        details=details,
    )

"""The scorers of a run: made, and checked, before any server is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specforge.datasets import ScoringOptions, make_scorer, resolve, unscored_reason
from specforge.matrix import BenchmarkSpec
from specforge.scoring.code import CodeScorer
from specforge.scoring.score import Scorer


class Scorers:
    """One scorer a dataset.

    Raises:
        UsageError: half a judge is named, or model-written code is allowed where nothing isolates it.
    """

    def __init__(self, specs: Sequence[BenchmarkSpec], options: ScoringOptions) -> None:
        self._options = options
        self._scorers: dict[str, Scorer | None] = {}
        self._isolation: dict[str, Any] | None = None
        for spec in specs:
            name = resolve(spec).name
            scorer = self._scorers[name] = make_scorer(name, options)
            if isinstance(scorer, CodeScorer):
                self._isolation = scorer.isolation.as_record()

    def of(self, dataset: str) -> Scorer | None:
        """A dataset's scorer; None where :meth:`why_none` says why."""
        return self._scorers[dataset]

    def why_none(self, dataset: str) -> str | None:
        """Why a dataset's answers get no verdict."""
        return unscored_reason(dataset, self._options)

    def isolation(self, dataset: str) -> dict[str, Any] | None:
        """What keeps model-written programs in; None where none are run."""
        return self._isolation if isinstance(self._scorers[dataset], CodeScorer) else None

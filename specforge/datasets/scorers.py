"""Which scorer a dataset gets, and why it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from specforge.datasets.definition import DatasetDefinition
from specforge.datasets.registry import find
from specforge.scoring.choice import ChoiceScorer
from specforge.scoring.code import CodeScorer
from specforge.scoring.math import MathScorer
from specforge.scoring.number import NumberScorer
from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.score import Scorer


@dataclass(frozen=True, slots=True)
class ScoringOptions:
    """What the user allows and names for scoring.

    Attributes:
        judge_base_url: an OpenAI-compatible endpoint, such as ``https://host/v1``; None for no judge.
        judge_model: the judge's model name there.
        judge_api_key: its key; None for none.
        judge_concurrency: requests to the judge at once.
        allow_code_execution: whether model-written code may run.
        sandbox: how it runs.
    """

    judge_base_url: str | None = None
    judge_model: str | None = None
    judge_api_key: str | None = None
    judge_concurrency: int = 8
    allow_code_execution: bool = False
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)

    @property
    def has_judge(self) -> bool:
        """Whether a judge is named completely."""
        return self.judge_base_url is not None and self.judge_model is not None


def unscored_reason(dataset: DatasetDefinition | str, options: ScoringOptions) -> str | None:
    """Why answers to this dataset get no verdict under these options; None where they do."""
    kind = (find(dataset) if isinstance(dataset, str) else dataset).scorer
    if kind == "code" and not options.allow_code_execution:
        return "model-written code was not run; --allow-code-execution allows it"
    if kind == "conversation" and not options.has_judge:
        return "conversations have no reference answer; name a judge with --judge-base-url and --judge-model"
    return None


def make_scorer(dataset: DatasetDefinition | str, options: ScoringOptions) -> Scorer | None:
    """The dataset's scorer; None where :func:`unscored_reason` says why there is none."""
    kind = (find(dataset) if isinstance(dataset, str) else dataset).scorer
    if unscored_reason(dataset, options) is not None:
        return None
    makers: Mapping[str, Callable[[], Scorer]] = {
        "number": NumberScorer,
        "choice": ChoiceScorer,
        "math": MathScorer,
        "code": lambda: CodeScorer(replace(options.sandbox, allow=True)),
    }
    return makers[kind]() if kind in makers else None

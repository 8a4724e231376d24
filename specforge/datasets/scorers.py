"""Which scorer a dataset gets, and why it has none. The one place that joins scoring to the judge's client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from specforge.client.judge import JudgeClient
from specforge.datasets.definition import DatasetDefinition
from specforge.datasets.registry import find
from specforge.errors import UsageError
from specforge.scoring.choice import ChoiceScorer
from specforge.scoring.code import CodeScorer
from specforge.scoring.finance import FinanceScorer
from specforge.scoring.judge import TOLERANCES, AnswerJudge, ConversationJudge, Judge
from specforge.scoring.math import MathScorer
from specforge.scoring.number import NumberScorer
from specforge.scoring.sandbox.settings import SandboxSettings
from specforge.scoring.score import Scorer
from specforge.scoring.short import ShortAnswerScorer

JUDGED = ("conversation", "qa", "finance")
"""The kinds of scoring that a judge does where one is named."""


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
    kind = _kind(dataset)
    if kind == "code" and not options.allow_code_execution:
        return "model-written code was not run; --allow-code-execution allows it"
    if kind == "conversation" and not options.has_judge:
        return "conversations have no reference answer; name a judge with --judge-base-url and --judge-model"
    return None


def make_scorer(dataset: DatasetDefinition | str, options: ScoringOptions) -> Scorer | None:
    """The dataset's scorer; None where :func:`unscored_reason` says why there is none.

    Raises:
        UsageError: the judge's address is none, or only half of the judge is named.
    """
    kind = _kind(dataset)
    judge = _judge(options) if kind in JUDGED else None
    if unscored_reason(dataset, options) is not None:
        return None
    if judge is not None:
        return ConversationJudge(judge) if kind == "conversation" else AnswerJudge(judge, TOLERANCES[kind])
    makers: Mapping[str, Callable[[], Scorer]] = {
        "choice": ChoiceScorer,
        "code": lambda: CodeScorer(replace(options.sandbox, allow=True)),
        "finance": FinanceScorer,
        "math": MathScorer,
        "number": NumberScorer,
        "qa": ShortAnswerScorer,
    }
    return makers[kind]()


def _kind(dataset: DatasetDefinition | str) -> str:
    return (find(dataset) if isinstance(dataset, str) else dataset).scorer


def _judge(options: ScoringOptions) -> Judge | None:
    if options.judge_base_url is None and options.judge_model is None:
        return None
    if options.judge_base_url is None or options.judge_model is None:
        raise UsageError("--judge-base-url and --judge-model: only one of the two is given; a judge needs both")
    client = JudgeClient(options.judge_base_url, options.judge_model, options.judge_api_key)
    return Judge(client.complete, options.judge_model, options.judge_concurrency)

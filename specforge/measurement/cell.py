"""Measures one cell against one server and makes its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from specforge.client.sampling import Sampling
from specforge.datasets.model import Benchmark, Prompt
from specforge.errors import ServerError
from specforge.load.blocking import run_blocking
from specforge.load.prepare import Limits, PreparedPrompt
from specforge.load.rounds import Load, run_load
from specforge.load.schedule import ClosedLoop, OpenLoop, Schedule
from specforge.load.selfwatch import SelfWatch
from specforge.matrix import BenchmarkSpec
from specforge.measurement.collector import Collector
from specforge.measurement.earlier import Earlier
from specforge.measurement.goodput import Goodput
from specforge.measurement.processes import run_shared_load
from specforge.measurement.progress import Progress
from specforge.measurement.review import Verdicts, review
from specforge.measurement.target import Target
from specforge.metrics.accuracy import accuracy_metrics
from specforge.metrics.aggregate import speed_and_acceptance
from specforge.results.record import FORMAT, CellRecord
from specforge.results.rows import RowWriter, sha256_of
from specforge.scoring.grades import mean_grades
from specforge.scoring.score import Scorer

FEW_PROMPTS = 4  # prompts a slot, below which filling and draining weigh too much in a throughput
INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """All that decides a measurement, but for the server.

    Attributes:
        config: the record's ``config``.
        spec: the benchmark as the user wrote it.
        benchmark: its prompts.
        concurrency: requests in flight at once, and the size of a warm-up batch.
        schedule: when requests are sent; None for a closed loop of ``concurrency``.
        sampling: what each request states.
        max_new_tokens: limit for one answer.
        largest_tree: the largest num-draft-tokens of the run.
        rounds: measured rounds.
        scorer: None where nothing is scored, for the reason ``unscored``.
        rows_path: where the rows go.
        environment: what the record says of the surroundings; the server's part is added here.
        goodput: limits that a good request keeps; None where none is asked for.
        processes: client processes that share the load.
        warmup_batches: before the first round; None for two after a launch (kernels compile), else one.
        earlier: what a measurement that was cut off left in ``rows_path``; None where there was none.
    """

    config: Mapping[str, Any]
    spec: BenchmarkSpec
    benchmark: Benchmark
    concurrency: int
    sampling: Sampling
    max_new_tokens: int
    rows_path: Path
    schedule: Schedule | None = None
    largest_tree: int = 0
    rounds: int = 1
    scorer: Scorer | None = None
    unscored: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    goodput: Goodput | None = None
    processes: int = 1
    warmup_batches: int | None = None
    earlier: Earlier | None = None


PreparedPrompts = dict[str, list[PreparedPrompt]]
"""Prompts prepared earlier in the run, kept by :meth:`specforge.measurement.target.Target.prepare`."""


def measure_cell(target: Target, plan: CellPlan, progress: Progress, prepared_before: PreparedPrompts) -> CellRecord:
    """Prepares, warms up, measures, scores.

    A server that dies, or Ctrl-C, ends the measurement: the record then has what was measured, its ``status`` is
    ``failed`` or ``partial``, and its ``reason`` says why (:data:`INTERRUPTED` for Ctrl-C, which the caller raises
    again).
    """
    rows = RowWriter(plan.rows_path)
    collector = Collector(rows, progress)
    self_watch = SelfWatch()
    prompts: list[PreparedPrompt] = []
    status, reason = "ok", None
    verdicts: Verdicts = {}
    earlier = plan.earlier
    limits = Limits(plan.max_new_tokens, target.capabilities.max_model_len, plan.largest_tree)
    try:
        target.check_alive()
        prompts = target.prepare(plan.benchmark.prompts, plan.sampling, prepared_before, str(plan.spec))
        warmup = target.prepare(plan.benchmark.warmup, plan.sampling, prepared_before, f"{plan.spec}|warm-up")
        load = Load(
            prompts=prompts,
            warmup=warmup,
            schedule=plan.schedule or ClosedLoop(plan.concurrency),
            concurrency=plan.concurrency,
            warmup_batches=plan.warmup_batches or (1 if target.cells_measured else 2),
            rounds=plan.rounds,
            sampling=plan.sampling,
            limits=limits,
            flush=target.can_flush,
            kept_rounds=earlier.attempts if earlier is not None else (),
            first_attempt=earlier.next_attempt if earlier is not None else 0,
        )
        if earlier is not None:
            earlier.restore(prompts, collector)
            progress.restart(len(collector.prompts))
        _run(target, plan, load, collector, self_watch, progress)
        target.cells_measured += 1
    except ServerError as error:
        status, reason = "failed", str(error)
    except KeyboardInterrupt:
        status, reason = "partial", INTERRUPTED
    finally:
        rows.close()
    try:
        if reason != INTERRUPTED:
            verdicts = review(plan.rows_path, plan.benchmark.prompts, collector.counting_attempt, plan.scorer)
    except KeyboardInterrupt:
        status, reason = "partial", INTERRUPTED
    metrics = _metrics(target, plan, collector, verdicts)
    progress.scored(metrics["accuracy"])
    warnings = _warnings(target, plan, self_watch)
    if prompts and collector.prompts.status and set(collector.prompts.status) == {"skipped"}:
        reason = reason or prompts[0].skip_reason
        status = "skipped" if status == "ok" else status
    return CellRecord(
        format=FORMAT,
        config=dict(plan.config),
        benchmark=_benchmark(plan, prompts),
        metrics=metrics,
        requests=_requests(collector, plan.benchmark.prompts),
        environment={
            **plan.environment,
            **({"resumed": earlier.as_record(plan.rounds)} if earlier is not None else {}),
            "template_hash": _template_hash(target, plan.sampling, reason),
            "max_model_len": target.capabilities.max_model_len,
            "route": target.capabilities.wire.route.value,
            "streamed": target.capabilities.wire.stream,
            "client": self_watch.as_record(len(collector.turns)) | _achieved(plan, collector, metrics),
            "warnings": warnings,
        },
        status=status,
        reason=reason,
        rows={"path": str(plan.rows_path), "sha256": sha256_of(plan.rows_path)},
    )


def _run(
    target: Target, plan: CellPlan, load: Load, collector: Collector, self_watch: SelfWatch, progress: Progress
) -> None:
    if plan.processes == 1:
        run_blocking(lambda: run_load(target.connection(), load, collector, self_watch))
        return
    run_blocking(
        lambda: run_shared_load(
            target.connection(),
            load,
            collector,
            self_watch,
            processes=plan.processes,
            rows_path=plan.rows_path,
            model_path=target.model_path,
            progress=progress,
        )
    )


def _metrics(target: Target, plan: CellPlan, collector: Collector, verdicts: Verdicts) -> dict[str, Any]:
    columns = collector.prompts
    unparsed = [False] * len(columns)
    for at, key in enumerate(zip(columns.row_id, columns.round, strict=True)):
        verdict = verdicts.get(key)
        if verdict is None:
            continue
        columns.degenerate[at] = verdict.degenerate
        columns.truncated_thinking[at] = verdict.truncated_thinking
        if verdict.score is not None:
            columns.correct[at] = verdict.score.correct
            unparsed[at] = verdict.score.answer is None
    source = "stream" if target.capabilities.wire.stream else "server"
    slots = plan.concurrency if plan.schedule is None else None
    metrics = speed_and_acceptance(collector.turns, collector.rounds, slots, source)
    metrics |= accuracy_metrics(columns.row_id, columns.correct, unparsed, columns.truncated, columns.status)
    reasons: dict[str, str] = metrics["reasons"]
    if metrics["accuracy"] is None:
        reasons["accuracy"] = plan.unscored or "no answer got a verdict"
    asked = sum(status != "skipped" for status in columns.status)
    metrics["goodput"] = None
    if plan.goodput is not None:
        metrics["goodput"] = plan.goodput.metric(collector.turns, collector.rounds, columns.status.count("too_long"))
        if metrics["goodput"] is None:
            reasons["goodput"] = "no round counts, or a time that it limits is not known (--stream measures it)"
    metrics |= {
        "failed": columns.status.count("failed"),
        "too_long": columns.status.count("too_long"),
        "retried": sum(retries > 0 for retries in columns.retries),
        "truncated": sum(columns.truncated),
        "truncated_thinking": sum(columns.truncated_thinking),
        "degenerate": sum(columns.degenerate),
        "clamped": collector.clamped,
        "rounds_repeated": collector.rounds_repeated,
        "truncated_share": sum(columns.truncated) / asked if asked else None,
        "degenerate_share": sum(columns.degenerate) / asked if asked else None,
        "first_error": collector.first_error,
        "judge": _grades(plan.benchmark.prompts, verdicts),
        "speedup": None,
        "speedup_interval": None,
        "efficiency": None,
        "lossless": None,
    }
    return metrics


def _grades(prompts: Sequence[Prompt], verdicts: Verdicts) -> dict[str, Any] | None:
    categories = {prompt.row_id: prompt.category for prompt in prompts}
    return mean_grades(
        (categories[row_id], verdict.score) for (row_id, _), verdict in verdicts.items() if verdict.score is not None
    )


def _benchmark(plan: CellPlan, prompts: Sequence[PreparedPrompt]) -> dict[str, Any]:
    static = [prepared.static_hash for prepared in prompts]
    tokens = [prepared.token_hash for prepared in prompts]
    everything = hashlib.sha256("|".join(map(str, static + tokens)).encode()).hexdigest()
    return {
        "spec": str(plan.spec),
        "name": plan.benchmark.name,
        "subset": list(plan.spec.subsets),
        "num_prompts": len(plan.benchmark.prompts),
        "source": asdict(plan.benchmark.source),
        "row_ids": [prompt.row_id for prompt in plan.benchmark.prompts],
        "hashes": {"static_turns": static, "token_ids": tokens, "all": everything},
        "sampling": plan.sampling.as_record(),
        "max_new_tokens": plan.max_new_tokens,
        "seed": plan.sampling.seed,
        "rounds": plan.rounds,
        "scorer": plan.scorer.name if plan.scorer is not None else None,
        "notes": list(plan.benchmark.notes),
    }


def _achieved(plan: CellPlan, collector: Collector, metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """What was asked of the client, and what it did: requests in flight on average, or requests sent a second."""
    if not isinstance(plan.schedule, OpenLoop):
        return {"asked_concurrency": plan.concurrency, "achieved_concurrency": metrics["requests_in_flight"]}
    asked, prompts = plan.schedule, len(plan.benchmark.prompts)
    span = asked.arrivals(prompts)[-1]
    first = next(iter(collector.rounds), None)
    sent = np.sort(collector.turns.column("sent_at")[collector.turns.of_round(first)] if first is not None else [])
    # What was drawn, not the rate itself: few arrivals are seldom as dense as they are on average.
    return {
        "asked_request_rate": (prompts - 1) / span if span > 0 else None,
        "achieved_request_rate": float((sent.size - 1) / (sent[-1] - sent[0])) if sent.size == prompts > 1 else None,
    }


def _requests(collector: Collector, prompts: Sequence[Prompt]) -> dict[str, list[Any]]:
    """The columns in drawing order, whatever order the answers came in."""
    drawn = {prompt.row_id: at for at, prompt in enumerate(prompts)}
    columns = collector.prompts
    order = sorted(range(len(columns)), key=lambda at: (columns.round[at], drawn[columns.row_id[at]]))
    arrays = {name: getattr(columns, name) for name in columns.__dataclass_fields__}
    return {name: [values[at] for at in order] for name, values in arrays.items()}


def _warnings(target: Target, plan: CellPlan, self_watch: SelfWatch) -> list[str]:
    warnings = list(target.notes)
    if plan.schedule is None and len(plan.benchmark.prompts) < FEW_PROMPTS * plan.concurrency:
        warnings.append(
            f"{len(plan.benchmark.prompts)} prompts for {plan.concurrency} slots: fewer than {FEW_PROMPTS} a slot, "
            "so filling and draining weigh in the throughput"
        )
    own = self_watch.warning()
    return [*warnings, own] if own is not None else warnings


def _template_hash(target: Target, sampling: Sampling, reason: str | None) -> str | None:
    if reason is not None:
        return None
    try:
        return target.template_hash(sampling)
    except ServerError:
        return None

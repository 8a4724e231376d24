"""The metrics that runs are compared by: the one table that the gate, the comparison, the report and the docs read."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specforge.errors import UsageError


class Design(enum.Enum):
    """What a metric's units are, and so how two runs of it are tested (:mod:`specforge.metrics.significance`)."""

    ROUNDS = "rounds"
    SPEEDUP = "rounds, with those of the target-only cell"
    RATIO = "prompts, paired, weighted"
    SHARE = "prompts, paired"

    @property
    def by_prompt(self) -> bool:
        """Whether its units are prompts rather than rounds."""
        return self in (Design.RATIO, Design.SHARE)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric that two runs can be compared by.

    Attributes:
        name: as ``--fail-on`` and the tables call it.
        path: the keys that lead to its value in a record's ``metrics``.
        higher_is_better: its direction.
        design: what its units are.
        columns: where the units are: for rounds the key in ``metrics.rounds``; for a ratio the two columns of
            ``requests`` whose sums it divides; for a share the column of verdicts.
        unit: as a person reads it: ``tok/s``, ``s``, ``×``, ``%``, or nothing.
        doc: one line on what it is.
        also: other names it is known by.
    """

    name: str
    path: tuple[str, ...]
    higher_is_better: bool
    design: Design
    columns: tuple[str, ...]
    unit: str
    doc: str
    also: tuple[str, ...] = ()

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1 and is printed in per cent, its changes in percentage points."""
        return self.design is Design.SHARE

    def value(self, metrics: Mapping[str, Any]) -> float | None:
        """Its value in a record's ``metrics``; None where it was not measured."""
        found: Any = metrics
        for key in self.path:
            if not isinstance(found, Mapping):
                return None
            found = found.get(key)
        return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None

    def show(self, value: float | None) -> str:
        """A value with its unit, such as ``152.3 tok/s``, ``38.1 ms`` or ``71.5 %``; a dash for None."""
        if value is None:
            return "–"
        if self.is_share:
            return f"{100 * value:.1f} %"
        if self.unit == "s":
            return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
        if self.unit == "×":
            return f"{value:.2f}×"
        if not self.unit:
            return f"{value:.3f}"
        return f"{value:.1f} {self.unit}" if value >= 10 else f"{value:.3g} {self.unit}"


CATALOG = (
    Metric(
        "throughput",
        ("output_throughput",),
        True,
        Design.ROUNDS,
        ("output_throughput",),
        "tok/s",
        "output tokens of the measured requests ÷ wall time",
        ("output_throughput",),
    ),
    Metric(
        "speedup",
        ("speedup",),
        True,
        Design.SPEEDUP,
        ("output_throughput",),
        "×",
        "throughput ÷ that of the target-only cell of the same batch size",
    ),
    Metric(
        "latency_p50",
        ("latency", "p50"),
        False,
        Design.ROUNDS,
        ("latency_p50",),
        "s",
        "median time of a request from send to last byte",
    ),
    Metric(
        "latency_p99",
        ("latency", "p99"),
        False,
        Design.ROUNDS,
        ("latency_p99",),
        "s",
        "99th percentile of the same",
    ),
    Metric(
        "ttft",
        ("ttft", "p50"),
        False,
        Design.ROUNDS,
        ("ttft_p50",),
        "s",
        "median time to the first token",
        ("ttft_p50",),
    ),
    Metric(
        "tpot",
        ("tpot", "p50"),
        False,
        Design.ROUNDS,
        ("tpot_p50",),
        "s",
        "median time per output token after the first",
        ("tpot_p50",),
    ),
    Metric(
        "acceptance_length",
        ("acceptance_length",),
        True,
        Design.RATIO,
        ("output_tokens", "verify_steps"),
        "",
        "Σ output tokens ÷ Σ verification steps",
    ),
    Metric(
        "accuracy",
        ("accuracy",),
        True,
        Design.SHARE,
        ("correct",),
        "%",
        "share of prompts answered right",
    ),
    Metric(
        "lossless",
        ("lossless", "identical_share"),
        True,
        Design.SHARE,
        ("identical",),
        "%",
        "share of answers that are the target-only cell's, token for token",
        ("identical_share", "lossless.identical_share"),
    ),
    Metric(
        "degenerate",
        ("degenerate_share",),
        False,
        Design.SHARE,
        ("degenerate",),
        "%",
        "share of answers that are loops",
        ("degenerate_share",),
    ),
)


def find_metric(name: str) -> Metric:
    """The metric of a name or of one of its other names.

    Raises:
        UsageError: there is none; the nearest name is suggested.
    """
    by_name = {known: metric for metric in CATALOG for known in (metric.name, *metric.also)}
    wanted = name.strip().lower()
    if wanted in by_name:
        return by_name[wanted]
    names = ", ".join(metric.name for metric in CATALOG)
    near = [known for known in by_name if wanted and known.startswith(wanted)]
    near += difflib.get_close_matches(wanted, by_name, n=1, cutoff=0.5)
    hint = f"did you mean {by_name[near[0]].name}? " if near else ""
    raise UsageError(f"--fail-on: there is no metric {name!r}; {hint}The metrics are {names}")


def catalog_table() -> str:
    """The catalog as the Markdown table that the docs hold."""
    lines = ["| metric | better | unit of resampling | what it is |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{metric.name}` | {'higher' if metric.higher_is_better else 'lower'} "
        f"| {metric.design.value} | {metric.doc} |"
        for metric in CATALOG
    ]
    return "\n".join(lines)

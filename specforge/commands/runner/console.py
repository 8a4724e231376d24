"""What ``specforge benchmark`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from specforge.measurement.sweep import saturation
from specforge.results.record import CellRecord

_DASH = "-"
_SWEEP = ("load", "tok/s", "req/s", "accept", "latency p50", "p99", "ttft p50", "tpot p50", "in flight", "goodput", "")


def one_level(record: CellRecord) -> Iterator[str]:
    """The lines for one level."""
    yield _title(record)
    rows = [("status", _status(record)), *_lines(record["metrics"], record["config"])]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        yield f"  {name:<{width}}  {value}"
    yield from remarks([record])


def sweep(records: Sequence[CellRecord]) -> Iterator[str]:
    """The lines for several levels: one row each, with a mark where throughput stops growing."""
    yield _title(records[0])
    place = saturation([record["metrics"]["output_throughput"] for record in records])
    rows = [_SWEEP, *(_row(record, at == place) for at, record in enumerate(records))]
    shown = [at for at in range(len(_SWEEP)) if not at or any(row[at] not in (_DASH, "") for row in rows[1:])]
    widths = {at: max(len(row[at]) for row in rows) for at in shown}
    for row in rows:
        cells = (row[at].rjust(widths[at]) if _SWEEP[at] else row[at] for at in shown)
        yield ("  " + "  ".join(cells)).rstrip()
    if place is None and len(records) > 1:
        yield "  throughput still grew at the last level"
    yield from remarks(records)


def remarks(records: Sequence[CellRecord]) -> Iterator[str]:
    """Warnings and notes, each once."""
    for warning in dict.fromkeys(text for record in records for text in record["environment"]["warnings"]):
        yield f"warning: {warning}"
    for note in dict.fromkeys(text for record in records for text in record["benchmark"]["notes"]):
        yield f"note: {note}"


def _title(record: CellRecord) -> str:
    config, benchmark, environment = record["config"], record["benchmark"], record["environment"]
    server = environment["server"] or {}
    model = server.get("model_path") or "unknown model"
    version = f"SGLang {server['version']}" if server.get("version") else "unknown server"
    drafting = "no speculation"
    if config["algorithm"]:
        drafting = "{algorithm} {num_steps},{topk},{num_draft_tokens}".format(**config)
    elif config["num_steps"] is None:
        drafting = "speculation unknown"
    rows = f" ({environment['label']})" if environment["label"] else ""
    asked = f"{benchmark['name']}{rows}, {benchmark['num_prompts']} prompts"
    if benchmark["rounds"] > 1:
        asked += f" x {benchmark['rounds']} rounds"
    return f"{asked}: {model}, {drafting}, {version} at {environment['base_url']}"


def _status(record: CellRecord) -> str:
    return record["status"] if record["reason"] is None else f"{record['status']}: {record['reason']}"


def _lines(metrics: dict[str, Any], config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    reasons = metrics["reasons"]

    def known(name: str, value: str) -> str:
        return value if metrics[name] is not None or name not in reasons else f"{_DASH} ({reasons[name]})"

    rate, slots = config["request_rate"], config["concurrency"]
    offered = f"{rate:g} req/s, {config['arrivals']}" if rate is not None else f"{slots} in flight"
    yield "load", f"{offered}; achieved {_number(metrics['requests_in_flight'], '.1f')} in flight on average"
    yield "requests", _counts(metrics)
    yield "tokens", f"{metrics['output_tokens']:,} out, {metrics['prompt_tokens']:,} in{_cached(metrics)}"
    yield "duration", _time(metrics["duration"])
    yield "output throughput", known("output_throughput", _number(metrics["output_throughput"], ",.1f", " tok/s"))
    if metrics["output_throughput_saturated"] is not None:
        yield "  all slots busy", _number(metrics["output_throughput_saturated"], ",.1f", " tok/s")
    yield "request throughput", _number(metrics["request_throughput"], ",.2f", " req/s")
    for name, title in (("latency", "latency"), ("ttft", "time to first token"), ("tpot", "time per output token")):
        yield title, known(name, _distribution(metrics[name]))
    if metrics["itl"] is not None:
        yield "inter-token latency", _distribution(metrics["itl"])
    yield "acceptance length", known("acceptance_length", _acceptance(metrics))
    yield "verification steps", _number(metrics["spec_verify_ct"], ",d")
    if metrics["goodput"] is not None or "goodput" in reasons:
        yield "goodput", known("goodput", _goodput(metrics["goodput"]))


def _row(record: CellRecord, stops: bool) -> tuple[str, ...]:
    metrics, config = record["metrics"], record["config"]
    latency = metrics["latency"] or {}
    rate = config["request_rate"]
    mark = "<- throughput stops growing" if stops else ""
    if record["status"] != "ok":
        mark = f"{record['status']}: {record['reason']}"
    goodput = metrics["goodput"]
    return (
        f"{rate:g} req/s" if rate is not None else str(config["concurrency"]),
        _number(metrics["output_throughput"], ",.1f"),
        _number(metrics["request_throughput"], ",.2f"),
        _number(metrics["acceptance_length"], ".2f"),
        _time(latency.get("p50")),
        _time(latency.get("p99")),
        _time((metrics["ttft"] or {}).get("p50")),
        _time((metrics["tpot"] or {}).get("p50")),
        _number(metrics["requests_in_flight"], ".1f"),
        _DASH if goodput is None else f"{goodput['share']:.1%}",
        mark,
    )


def _counts(metrics: dict[str, Any]) -> str:
    counted = (
        ("failed", "failed"),
        ("retried", "retried"),
        ("too_long", "too long"),
        ("truncated", "cut at the limit"),
        ("degenerate", "loops"),
        ("clamped", "clamped"),
    )
    return ", ".join(
        [f"{metrics['requests']:,} answered", *(f"{metrics[name]} {text}" for name, text in counted if metrics[name])]
    )


def _cached(metrics: dict[str, Any]) -> str:
    share = metrics["cached_token_share"]
    return "" if share is None else f" ({share:.1%} from the server's cache)"


def _acceptance(metrics: dict[str, Any]) -> str:
    parts = [_number(metrics["acceptance_length"], ".3f")]
    if metrics["acceptance_length_decode"] is not None:
        parts.append(f"decode alone {metrics['acceptance_length_decode']:.3f}")
    if metrics["acceptance_rate"] is not None:
        parts.append(f"rate {metrics['acceptance_rate']:.1%}")
    return ", ".join(parts)


def _goodput(goodput: dict[str, Any] | None) -> str:
    if goodput is None:
        return _DASH
    limits = " ".join(f"{name}:{1000 * limit:g}ms" for name, limit in goodput["limits"].items())
    return f"{goodput['share']:.1%} of requests, {goodput['per_second']:.2f} req/s keep {limits}"


def _distribution(values: dict[str, Any] | None) -> str:
    if values is None:
        return _DASH
    shown = "  ".join(f"{name} {_time(values[name])}" for name in ("p50", "p90", "p95", "p99"))
    return f"{shown}  ({values['source']})" if "source" in values else shown


def _number(value: float | None, form: str, unit: str = "") -> str:
    return _DASH if value is None else f"{value:{form}}{unit}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return _DASH
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"

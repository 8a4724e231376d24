"""Numbers that take two cells: speedup, efficiency and losslessness against the target-only cell.

The target-only cell is that of the same batch size, request rate and benchmark, never one of another size. Where there
is none the numbers stay null, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specforge.errors import RecordError
from specforge.metrics.lossless import Lossless
from specforge.metrics.speedup import Interval, efficiency, interval_by_prompts, interval_by_rounds
from specforge.results.cell import Cell, shared_prompts
from specforge.results.change import FEWEST_ROUNDS, baseline_of
from specforge.results.load import SavedRun
from specforge.results.pairing import Pair, asked_differently
from specforge.results.record import CellRecord
from specforge.results.rows import Row, read_rows

IS_BASELINE = "the cell is itself the target-only baseline"
_Answers = Mapping[tuple[str, int], list[list[int]]]


def add_speedup(records: Sequence[CellRecord]) -> None:
    """Fills ``speedup``, ``speedup_interval``, ``speedup_interval_unit`` and ``efficiency`` of a run's records.

    The interval is over rounds where both cells have two and more, else over prompts; ``speedup_interval_unit``
    says which: ``round`` or ``prompt``.
    """
    cells = [Cell(record) for record in records]
    for cell in cells:
        baseline = baseline_of(cell, cells)
        speedup, reason = _speedup(cell, baseline)
        interval, unit = (None, None) if speedup is None or baseline is None else _interval(speedup, cell, baseline)
        cell.metrics |= {
            "speedup": speedup,
            "speedup_interval": None if interval is None else list(interval),
            "speedup_interval_unit": unit,
            "efficiency": efficiency(speedup, cell.metrics.get("acceptance_length")),
        }
        _explain(cell, "speedup", reason)
        if reason is None and cell.metrics["efficiency"] is None:
            reason = "the acceptance length is not known"
        _explain(cell, "efficiency", reason)


def _speedup(cell: Cell, baseline: Cell | None) -> tuple[float | None, str | None]:
    if cell.is_target_only:
        return None, IS_BASELINE
    if baseline is None:
        return None, _no_baseline(cell, "this run")
    own, target_only = (side.metrics.get("output_throughput") for side in (cell, baseline))
    if not own or not target_only:
        return None, f"{(baseline if own else cell).label} has no throughput"
    return own / target_only, None


def _no_baseline(cell: Cell, where: str) -> str:
    if cell.key[0] is None:
        return "the batch size is not known, so there is no target-only configuration to compare with"
    return f"no target-only configuration {cell.key[0]},0,0,0 of {cell.benchmark} in {where}"


def _interval(speedup: float, cell: Cell, baseline: Cell) -> tuple[Interval | None, str | None]:
    rounds = [side.log_rounds("output_throughput") for side in (cell, baseline)]
    if min(map(len, rounds)) >= FEWEST_ROUNDS:
        return interval_by_rounds(speedup, *rounds), "round"
    shared = shared_prompts(baseline, cell, ("output_tokens", "latency"))
    if shared is None:
        return None, None
    (base_tokens, base_latency), (tokens, latency) = shared
    found = interval_by_prompts(speedup, (tokens, latency), (base_tokens, base_latency))
    return found, None if found is None else "prompt"


def add_lossless(records: Sequence[CellRecord], folder: Path, against: SavedRun | None = None) -> None:
    """Fills ``lossless`` of a run's records, and the column ``identical`` of their ``requests``.

    Rows are read as streams; only the baseline's token ids are held.

    Args:
        records: the run's records.
        folder: what relative paths of their rows start from.
        against: a saved run whose target-only cells are the baseline (``--lossless-against``); None for the run itself.
    """
    cells = [Cell(record) for record in records]
    baselines = cells if against is None else [Cell(record) for record in against.cells]
    where = "this run" if against is None else against.label
    answers: dict[tuple[Any, ...], _Answers | str] = {}
    # Cells of one baseline come together, so that its token ids are read once and held alone.
    for cell in sorted(cells, key=lambda cell: str(cell.baseline_key)):
        if cell.is_target_only and against is None:
            _explain(cell, "lossless", IS_BASELINE)
            continue
        baseline = baseline_of(cell, baselines)
        if baseline is None:
            _explain(cell, "lossless", _no_baseline(cell, where))
            continue
        if against is not None and (difference := asked_differently(Pair(baseline, cell))) is not None:
            _explain(cell, "lossless", f"{where} was asked something else: {difference}")
            continue
        if baseline.key not in answers:
            answers = {baseline.key: _answers(baseline, folder if against is None else against.folder)}
        _compare(cell, answers[baseline.key], folder)


def _answers(cell: Cell, folder: Path) -> _Answers | str:
    """The token ids of every answer of a cell; the reason where they can't be had."""
    path = rows_path(cell.record, folder)
    if path is None:
        return f"{cell.label} has no rows"
    try:
        found = {
            (row["row_id"], row["round"]): tokens for row in read_rows(path) if (tokens := _output_ids(row)) is not None
        }
    except RecordError as error:
        return str(error)
    return found or f"the server gave no token ids for {cell.label}"


def _compare(cell: Cell, baseline: _Answers | str, folder: Path) -> None:
    path = rows_path(cell.record, folder)
    if isinstance(baseline, str) or path is None:
        _explain(cell, "lossless", baseline if isinstance(baseline, str) else f"{cell.label} has no rows")
        return
    count, identical = Lossless(), {}
    try:
        for row in read_rows(path):
            tokens = _output_ids(row)
            # A round that the baseline was not measured in is compared with its first one.
            reference = baseline.get((row["row_id"], row["round"])) or baseline.get((row["row_id"], 0))
            if tokens is not None and reference is not None:
                identical[row["row_id"], row["round"]] = count.add(reference, tokens)
    except RecordError as error:
        _explain(cell, "lossless", str(error))
        return
    requests = cell.record["requests"]
    requests["identical"] = [identical.get(key) for key in zip(requests["row_id"], requests["round"], strict=True)]
    cell.metrics["lossless"] = count.result()
    nothing = (
        None if cell.metrics["lossless"] else f"no answer with token ids that {cell.label} shares with its baseline"
    )
    _explain(cell, "lossless", nothing)


def _output_ids(row: Row) -> list[list[int]] | None:
    if row.get("superseded") or row.get("status") != "ok":
        return None
    turns = [turn.get("output_ids") for turn in row.get("turns") or ()]
    return turns if turns and all(turn is not None for turn in turns) else None


def rows_path(record: CellRecord, folder: Path) -> Path | None:
    """Where a record's rows are: its path seen from ``folder`` or from the working directory.

    None where there is no such file, as when a record was copied without its rows.
    """
    path = (record["rows"] or {}).get("path")
    if not path:
        return None
    candidates = (folder / path, Path(path))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _explain(cell: Cell, metric: str, reason: str | None) -> None:
    reasons = cell.metrics.setdefault("reasons", {})
    if reason is None:
        reasons.pop(metric, None)
    else:
        reasons[metric] = reason
        if metric == "lossless":
            cell.metrics["lossless"] = None

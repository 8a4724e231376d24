"""The record of one cell: what ``extra_info`` of pytest-benchmark's JSON holds, under stable names.

A record is plain JSON data. ``specforge benchmark`` writes one such object; a matrix run writes one a cell. The keys:

``format``
    1; a reader refuses a higher one.
``config``
    ``batch_size, num_steps, topk, num_draft_tokens, algorithm`` (null for target-only), and for
    ``specforge benchmark`` also ``concurrency`` and ``request_rate``.
``benchmark``
    ``spec`` (text form), ``name``, ``subset`` (list), ``num_prompts`` (drawn), ``source`` (the fields of
    :class:`specforge.datasets.model.Source`), ``row_ids`` (one a prompt), ``hashes`` {``static_turns``: one a prompt,
    hex; ``token_ids``: one a prompt, hex or null; ``all``: hex, over both}, ``sampling`` (what every request states),
    ``max_new_tokens``, ``seed``, ``rounds``, ``scorer`` (null where nothing is scored), ``notes`` (list of text).
``metrics``
    every number of the measurement; see :mod:`specforge.metrics`. What was not measured is null, and
    ``metrics.reasons`` says why under the same name.
``requests``
    parallel arrays, one entry for a prompt in a round (a conversation is one entry, its turns summed):
    ``row_id``, ``round``, ``output_tokens``, ``verify_steps``, ``correct_drafts``, ``latency`` (s), ``ttft`` (s),
    ``tpot`` (s), ``correct``, ``status`` (``ok``, ``failed``, ``too_long``, ``skipped``), ``retries``, ``truncated``,
    ``truncated_thinking``, ``degenerate``.
``environment``
    server version, its speculative settings as it reports them, GPU, model paths, template hash, flags, git commit,
    note. A cell that was cut off and resumed has ``resumed`` too: ``rounds_from_rows`` (accuracy, acceptance and times
    follow from the rows) and ``rounds_measured_anew``, ``rows_superseded``, ``last_row_was_cut``, ``other_conditions``.
``status``
    ``ok``, ``failed`` or ``partial``; ``reason`` says why in one line (null when ok).
``rows``
    ``path`` (relative to the run's JSON file where it can be) and ``sha256`` of the JSONL file with texts and
    token ids.

Cells are matched by :func:`cell_key`, never by pytest's ``fullname``.
"""

from __future__ import annotations

from typing import Any, TypedDict

FORMAT = 1


class CellRecord(TypedDict):
    """One cell's record; the module's docstring gives the meaning of each key."""

    format: int
    config: dict[str, Any]
    benchmark: dict[str, Any]
    metrics: dict[str, Any]
    requests: dict[str, list[Any]]
    environment: dict[str, Any]
    status: str
    reason: str | None
    rows: dict[str, str] | None


def cell_key(record: CellRecord) -> tuple[Any, ...]:
    """What makes two records the same cell: the configuration's numbers and the benchmark's name and subsets."""
    config, benchmark = record["config"], record["benchmark"]
    return (
        config.get("batch_size"),
        config.get("num_steps"),
        config.get("topk"),
        config.get("num_draft_tokens"),
        config.get("request_rate"),
        benchmark.get("name"),
        tuple(benchmark.get("subset") or ()),
    )

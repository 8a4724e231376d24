"""Fills the page's template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import jinja2

from specforge.errors import RecordError
from specforge.results.compare import compare_runs
from specforge.results.load import SavedRun
from specforge.results.render.table import headings, lines, remarks
from specforge.results.report.charts import draw_charts
from specforge.results.report.examples import find_examples
from specforge.results.report.overview import cell_rows, surroundings

SERIES = 6
"""How many colours the template has for runs and configurations; further ones begin anew."""


def render_report(runs: Sequence[SavedRun]) -> str:
    """The page for these runs; the first one is what the others are compared with.

    Raises:
        UsageError: the plotting library is not installed.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    examples, unreadable = find_examples(runs)
    sections = [(section.title, section.note, section.drawings) for section in draw_charts(runs)]
    return template.render(
        title=" · ".join(run.label for run in runs),
        runs=[(run.label, f"s{index % SERIES}") for index, run in enumerate(runs)],
        several=len(runs) > 1,
        cells=list(cell_rows(runs)),
        comparison=_comparison(runs),
        sections=sections,
        examples=examples,
        remarks=[*_remarks(runs), *unreadable],
        surroundings=[(run.label, surroundings(run)) for run in runs],
    )


def _comparison(runs: Sequence[SavedRun]) -> dict[str, Any] | None:
    if len(runs) < 2:
        return None
    try:
        found = compare_runs(runs[0], runs[1:])
    except RecordError as error:
        return {"refused": str(error)}
    return {"refused": None, "head": headings(found), "lines": list(lines(found)), "remarks": list(remarks(found))}


def _remarks(runs: Sequence[SavedRun]) -> Iterator[str]:
    for run in runs:
        prefix = f"{run.label}: " if len(runs) > 1 else ""
        labels = (record["environment"].get("label") for record in run.cells)
        warnings = (text for record in run.cells for text in record["environment"].get("warnings") or ())
        notes = (text for record in run.cells for text in record["benchmark"].get("notes") or ())
        for text in dict.fromkeys((*filter(None, labels), *warnings, *notes, *run.notes)):
            yield prefix + text

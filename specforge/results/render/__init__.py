"""A comparison as text, Markdown, JSON or CSV. Each is one function from comparisons to text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from specforge.results.compare import RunComparison
from specforge.results.render.data import as_csv, as_json
from specforge.results.render.markdown import as_markdown
from specforge.results.render.text import as_text

FORMATS: Mapping[str, Callable[[Sequence[RunComparison]], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "json": as_json,
    "csv": as_csv,
}
"""The formats by the name that ``--format`` takes."""

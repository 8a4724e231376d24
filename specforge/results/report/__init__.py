"""One self-contained HTML page about one run or several: no script, no request, readable on a phone, printable."""

from __future__ import annotations

from specforge.results.report.page import render_report

__all__ = ["render_report"]

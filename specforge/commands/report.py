"""``specforge report RUN ... --output FILE``: one HTML page about saved runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from specforge.results.load import STORAGE, load_run

_DESCRIPTION = """\
Writes one self-contained HTML page: no script, no request, light and dark. Of several runs the first one is what the
others are compared with.
"""
_EPILOG = """\
examples:
  specforge report results/after.json
  specforge report results/before.json results/after.json --output change.html
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's options."""
    parser = subparsers.add_parser(
        "report",
        help="write an HTML page about saved runs",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="a file, a folder with one run, or a storage number (0001)"
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, default=Path("report.html"), help="the page (default: report.html)"
    )
    parser.add_argument(
        "--storage",
        metavar="DIR",
        type=Path,
        default=STORAGE,
        help="pytest-benchmark's storage (default: ./.benchmarks)",
    )


def run(args: argparse.Namespace) -> int:
    """Writes the page.

    Raises:
        RecordError: a run can't be read.
        UsageError: the page can't be written, or the plotting library is not installed.
    """
    from specforge.results.output import write_text
    from specforge.results.report import render_report

    write_text(args.output, render_report([load_run(reference, args.storage) for reference in args.runs]))
    print(f"report: {args.output}")
    return 0

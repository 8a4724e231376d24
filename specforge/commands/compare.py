"""``specforge compare BASE NEW [MORE ...]``: what changed between saved runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specforge.results.load import STORAGE, load_run
from specforge.results.tolerance import parse_tolerances

_FORMATS = ("text", "markdown", "json", "csv")
_DESCRIPTION = """\
Compares saved runs cell by cell. A run is a file, a folder with one run, or a number of pytest-benchmark's storage
(0001). Exit status: 0, 1 for a regression, 2 where the runs can't be compared.
"""
_EPILOG = """\
examples:
  specforge compare results/before.json results/after.json
  specforge compare 0001 results/after.json --fail-on throughput:5% acceptance_length:2% accuracy:2pp
  specforge compare before.json after.json --format markdown --output comment.md
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's options."""
    parser = subparsers.add_parser(
        "compare",
        help="compare saved runs, and gate on regressions",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("base", metavar="BASE", help="the run compared against")
    parser.add_argument("new", metavar="NEW", nargs="+", help="the runs in question")
    parser.add_argument("--format", choices=_FORMATS, default="text", help="how to print it (default: text)")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write there instead of printing")
    parser.add_argument(
        "--fail-on",
        metavar="METRIC[@CELL]:TOLERANCE",
        nargs="+",
        action="extend",
        default=[],
        help="exit 1 where a metric got worse by more than the tolerance, beyond noise: throughput:5%% accuracy:2pp "
        "acceptance_length:0.1 throughput@4,3,1,4:3%%",
    )
    parser.add_argument("--fail-on-undecided", action="store_true", help="exit 1 also where noise leaves it open")
    parser.add_argument("--force", action="store_true", help="compare also where the prompts or the sampling differ")
    parser.add_argument(
        "--storage",
        metavar="DIR",
        type=Path,
        default=STORAGE,
        help="pytest-benchmark's storage (default: ./.benchmarks)",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the comparison.

    Raises:
        UsageError: a tolerance is wrong, or the output can't be written.
        RecordError: a run can't be read, or the runs can't be compared.
    """
    from specforge.results.compare import compare_runs
    from specforge.results.output import write_text
    from specforge.results.render import FORMATS

    tolerances = parse_tolerances(args.fail_on)
    base, *news = (load_run(reference, args.storage) for reference in (args.base, *args.new))
    comparisons = compare_runs(base, news, tolerances, force=args.force)
    text = FORMATS[args.format](comparisons)
    if args.output is None:
        sys.stdout.write(text)
    else:
        write_text(args.output, text)
    failed = any(
        one.gate is not None and one.gate.failed(fail_on_undecided=args.fail_on_undecided) for one in comparisons
    )
    return 1 if failed else 0

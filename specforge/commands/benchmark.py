"""``specforge benchmark``: measures one dataset against an SGLang that already runs.

It launches nothing, changes nothing of the server but its cache, executes no generated code and scores nothing.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from specforge.commands.runner.options import add_options
from specforge.commands.runner.run import measure
from specforge.commands.runner.settings import read_settings

_EPILOG = """\
examples:
  specforge benchmark --dataset gsm8k --base-url http://127.0.0.1:30000 --num-prompts 1024 --concurrency 16
  specforge benchmark --dataset gsm8k --concurrency 1 2 4 8 16    # where does throughput stop growing?
  specforge benchmark --dataset mtbench --request-rate 4 --stream --goodput ttft:500ms tpot:30ms
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options to ``specforge``'s parser."""
    parser = commands.add_parser(
        "benchmark",
        help="measure a running SGLang: throughput, latency, acceptance",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, and writes what ``--output-json`` asks for; the exit status is 0, or 2 for a failed level."""
    return measure(read_settings(arguments, sys.argv[1:]), sys.stdout, sys.stderr)

"""The ``specforge`` command: ``benchmark``, ``score``, ``compare``, ``report``, ``doctor``.

Exit status: 0; 1 for a regression; 2 for wrong use, or for what can't be done.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from specforge import __version__
from specforge.errors import SpecForgeError

_COMMANDS = ("benchmark", "score", "compare", "report", "doctor")
_EPILOG = """\
examples:
  specforge doctor
  specforge benchmark --dataset gsm8k --base-url http://127.0.0.1:30000 --num-prompts 200
  specforge compare results/before.json results/after.json --fail-on throughput:5%
  specforge report results/before.json results/after.json --output report.html

Each command has more with --help. The matrix itself runs under pytest: pytest bench_tests --help
"""
WRONG_USE = 2
INTERRUPTED = 130  # what shells report of a command that Ctrl-C ended


def parser() -> argparse.ArgumentParser:
    """The parser with every command's options; each lives in its module of :mod:`specforge.commands`."""
    root = argparse.ArgumentParser(
        prog="specforge",
        description="Benchmarks of speculative decoding on SGLang.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"specforge {__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _COMMANDS:
        importlib.import_module(f"specforge.commands.{name}").add_parser(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives its exit status."""
    parsed = parser().parse_args(arguments)
    command = importlib.import_module(f"specforge.commands.{parsed.command}")
    try:
        return int(command.run(parsed))
    except SpecForgeError as error:
        print(f"specforge {parsed.command}: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"specforge {parsed.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has had enough
        return 0


if __name__ == "__main__":
    sys.exit(main())

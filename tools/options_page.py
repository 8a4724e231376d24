"""Writes docs/options.md from the parsers.

python -m tools.options_page [FILE]     (default: docs/options.md)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from specforge.cli import parser as command_parser
from specforge.plugin.options import argument_parser

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
_INTRODUCTION = """\
# Options

Written by `python -m tools.options_page` from the parsers, and checked against them by the tests.

## pytest

What the plugin adds to pytest. Paths go before the options that take lists. pytest's own options work beside them
(`-k`, `-x`, `--lf`, `-n` of pytest-xdist), and so do pytest-benchmark's for saving and comparing.
"""
_MATRIX_FILE = """\
### A file of options

`--matrix FILE` reads options from TOML or YAML, by their long names with hyphens or underscores. An option that takes a
list takes a list of texts, a switch takes `true`, and one that takes JSON takes a table too. A table
`[benchmark.NAME]` holds `num-prompts`, `subset` (a name or a list) and `max-new-tokens` of one benchmark; without a
`benchmark-list` the tables are the list.

```toml
model-path = "meta-llama/Llama-3.1-8B-Instruct"
speculative-draft-model-path = "/path/to/draft"
config-list = ["1,0,0,0", "1,3,1,4", "8,0,0,0", "8,3,1,4"]
benchmark-list = ["mtbench", "gsm8k", "ceval"]
rounds = 3

[benchmark.gsm8k]
num-prompts = 200
max-new-tokens = 1024

[benchmark.ceval]
subset = ["accountant", "law"]
```

The command line wins over the file, `addopts` included. Relative paths are seen from where pytest runs, as on the
command line. An unknown key is an error that names the nearest known one.

Each record holds the options of its run (`environment.options`): those that differ from their defaults, and the matrix.
`--matrix results/RUN.json` repeats that run, with the revisions of the Hub's datasets that it had (but for aime, whose
two repositories are taken at their newest). Keys and headers are in no record; give them again.
"""


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for group in argument_parser()._action_groups:
        if group._group_actions and group.title:
            parts += [f"### {group.title}\n", _table(group._group_actions)]
    parts.append(_MATRIX_FILE)
    for name, parser in _commands().items():
        about = " ".join((parser.description or "").replace("``", "`").split("\n\n")[0].split())
        parts += [f"## specforge {name}\n", f"{about}\n", _table(parser._actions), _examples(parser.epilog or "")]
    return "\n".join(parts)


def _commands() -> dict[str, argparse.ArgumentParser]:
    for action in command_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise LookupError("specforge has no commands")


def _table(actions: Iterable[argparse.Action]) -> str:
    rows = (row for action in actions for row in _row(action))
    return "\n".join(["| option | what it is |", "| --- | --- |", *rows]) + "\n"


def _row(action: argparse.Action) -> Iterator[str]:
    if isinstance(action, argparse._HelpAction):
        return
    help_text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    value = "" if action.nargs == 0 else _value(action)
    first = " ".join(filter(None, [names, value]))
    yield f"| {first} | {help_text.replace('|', chr(92) + '|')} |"


def _value(action: argparse.Action) -> str:
    name = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    shown = f"{name} ..." if action.nargs == "+" else str(name)
    return f"`{shown}`".replace("|", "\\|")


def _examples(epilog: str) -> str:
    lines = [line.strip() for line in epilog.splitlines() if line.strip().startswith("specforge ")]
    return "\n".join(["```console", *(f"$ {line}" for line in lines), "```", ""])


def main() -> None:
    """Writes the page."""
    command = argparse.ArgumentParser(prog="python -m tools.options_page", description="Write docs/options.md.")
    command.add_argument("file", nargs="?", type=Path, default=PAGE, metavar="FILE", help="default: docs/options.md")
    command.parse_args().file.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

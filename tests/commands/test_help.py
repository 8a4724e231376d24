"""What ``--help`` and docs/options.md say is what the parsers take."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest

from specforge.cli import parser
from specforge.plugin.options import argument_parser
from tests.support.processes import run_pytest
from tools.options_page import PAGE, page


def examples(text: str, program: str) -> list[list[str]]:
    """The words behind the program's name of every example in a help text, continued lines joined."""
    joined = re.sub(r" \\\n\s*", " ", text)
    lines = re.findall(rf"^\s+{program} (?!COMMAND|\[)(.+)$", joined, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def helps() -> dict[str, argparse.ArgumentParser]:
    """The parser of ``specforge`` and those of its commands."""
    root = parser()
    (commands,) = (action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    return {"": root, **commands.choices}


@pytest.mark.parametrize("command", helps())
def test_the_help_of_each_command_has_examples_that_its_parser_takes(command: str):
    shown = examples(helps()[command].format_help(), "specforge")
    assert shown
    for words in shown:
        assert parser().parse_args(words).command == (command or words[0])


def test_pytest_s_help_has_the_options_in_one_group_with_examples_that_the_parser_takes(tmp_path):
    shown = run_pytest("--help", cwd=tmp_path, within=60).output
    group = shown.partition("speculative decoding benchmarks\n")[2]
    title, _, options = group.partition("\nOptions:\n")
    taking = argument_parser()
    taking.add_argument("paths", nargs="*")
    words = examples(title, "pytest")
    assert [taking.parse_args(example).paths for example in words] == [["bench_tests"]] * len(words)
    assert len(words) == 4
    for name in (name for action in argument_parser()._actions for name in action.option_strings):
        assert re.search(rf"{name}\b", options), name
    assert max(map(len, title.splitlines())) <= 80
    assert "SPECFORGE_" not in options


def test_the_reference_of_the_options_is_what_the_parsers_say():
    assert PAGE.read_text(encoding="utf-8") == page(), "out of date: python -m tools.options_page"

"""The commands that the documentation shows: each option is one that there is, and what can run here, runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from specforge import cli
from tests.docs.markdown import blocks
from tests.results.records import record, save
from tests.support.processes import ROOT, run_pytest

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|\$\([^)]*\)")
OPTION = re.compile(r"(?<!\S)--?[a-z][\w-]*")


def commands(program: str) -> Iterator[tuple[str, str]]:
    """Where a program is called, and with what, in fenced blocks and in indented ones."""
    called = re.compile(rf"(?:^|[\s/']){program} (?P<given>.*)")
    for page in PAGES:
        shown = [(block.place, command) for block in blocks(page) for command in block.commands]
        text = page.read_text(encoding="utf-8")
        shown += [(page.name, line) for line in re.findall(r"\n\n {4}(\S.*)", text)]
        for place, command in shown:
            found = called.search(command)
            if found is not None:
                yield place, found["given"]


def test_pytest_has_every_option_that_the_documentation_gives_it(tmp_path: Path):
    known = set(re.findall(r"(?<![\w-])--?[\w-]+", run_pytest("--help", cwd=tmp_path).output))
    given = [(place, option) for place, words in commands("pytest") for option in OPTION.findall(QUOTED.sub("", words))]
    assert len(given) > 30
    assert [(place, option) for place, option in given if option not in known] == []


def test_specforge_takes_every_command_line_that_the_documentation_shows():
    parser = cli.parser()
    shown = list(commands("specforge"))
    assert {words.split()[0] for _, words in shown} >= {"benchmark", "compare", "report", "score"}
    for place, words in shown:
        print(f"{place}: specforge {words}")  # what stands here last, where the parser leaves by an exit
        assert parser.parse_args(shlex.split(words.replace("...", ""))).command == words.split()[0]


def test_saved_runs_are_compared_and_reported_as_the_documentation_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    for name in ("before", "after"):
        save(tmp_path / "results" / f"{name}.json", record("1,0,0,0"), record("1,3,1,4"))
    shown = {words for _, words in commands("specforge") if re.match(r"(?:compare|report) results/before.json", words)}
    assert {words.split()[0] for words in shown} == {"compare", "report"}
    for words in shown:
        assert cli.main(shlex.split(words)) == 0, f"specforge {words}: {capsys.readouterr().err}"
    assert "gsm8k" in (tmp_path / "report.html").read_text(encoding="utf-8")

from __future__ import annotations

import argparse
import html.parser
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from specforge.commands import report
from specforge.errors import RecordError, UsageError
from specforge.results.relate import add_speedup
from tests.results.browser import CHROMIUM, visit
from tests.results.records import record, save, slowed

pytest.importorskip("matplotlib")

HOSTILE = '</pre><script>alert("x")</script><img src=http://example.invalid/x.png>'
SPEED = (100.0, 103.0, 98.0)


def call(*arguments: object) -> int:
    root = argparse.ArgumentParser()
    report.add_parser(root.add_subparsers())
    return report.run(root.parse_args(["report", *map(str, arguments)]))


def cells() -> list[dict[str, Any]]:
    found: list[Any] = [
        record(config, benchmark, rounds=[factor * r for r in SPEED])
        for benchmark in ("gsm8k", "mtbench")
        for config, factor in (("1,0,0,0", 1), ("1,3,1,4", 2.1), ("1,5,1,6", 2.4), ("4,0,0,0", 3.1), ("4,3,1,4", 4.4))
    ]
    add_speedup(found)
    return found


def write_run(folder: Path, name: str, records: list[dict[str, Any]], answer: str = "The answer is 4.") -> Path:
    for number, cell in enumerate(records):
        path = folder / name / "rows" / f"{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "row_id": row_id,
                "round": 0,
                "status": "ok",
                "messages": [{"role": "user", "content": f"Question {row_id}: {HOSTILE}"}],
                "turns": [{"text": answer, "reasoning": None, "output_ids": [1]}],
            }
            for row_id in cell["requests"]["row_id"]
        ]
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        cell["rows"] = {"path": f"{name}/rows/{number}.jsonl", "sha256": ""}
    return save(folder / f"{name}.json", *records)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("report")
    records = cells()
    records[1]["requests"]["degenerate"][3] = True
    records[1]["metrics"]["degenerate"] = 1
    records[2]["requests"]["latency"][7] = 50.0
    records[0]["environment"]["warnings"] = ["fewer than four prompts a slot"]
    base = write_run(tmp_path, "before", records, HOSTILE + " no" * 4000)
    new = write_run(tmp_path, "after", [slowed(cell, 0.8) for cell in records], "short")
    output = tmp_path / "report.html"
    assert call(base, new, "--output", output) == 0
    return output


class Tags(html.parser.HTMLParser):
    """Counts tags and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "br", "img", "link", "input"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href", "xlink:href"):
                self.links.append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: Path) -> Tags:
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    return tags


def test_the_page_is_whole_and_asks_for_nothing(page: Path) -> None:
    tags = parsed(page)
    assert tags.open == []
    assert "script" not in tags.seen
    assert "img" not in tags.seen
    assert [link for link in tags.links if not link.startswith("#")] == []


def test_ids_are_unique_over_all_charts_and_references_meet_theirs(page: Path) -> None:
    tags = parsed(page)
    assert len(tags.ids) == len(set(tags.ids))
    references = {link[1:] for link in tags.links} | set(re.findall(r"url\(#([^)]+)\)", page.read_text()))
    assert references <= set(tags.ids)


def test_every_section_is_there(page: Path) -> None:
    titles = re.findall("<h2>(.*?)</h2>", page.read_text())
    assert titles == [
        "Cells",
        "Compared with before",
        "Throughput",
        "Speedup",
        "Acceptance by position",
        "Accuracy",
        "Latency",
        "Prompts worth reading",
        "Environment",
    ]


def test_numbers_stand_with_their_intervals(page: Path) -> None:
    text = page.read_text()
    assert re.search(
        r'data-label="accuracy"><span><span>75\.0 %</span> <span class="interval">\[\d\d\.\d, \d\d\.\d\]', text
    )
    assert re.search(
        r'data-label="speedup"><span><span>2\.10×</span> <span class="interval">\[\d\.\d\d, \d\.\d\d\]', text
    )
    assert "fewer than four prompts a slot" in text
    assert "1 of 40 loops" in text


def test_texts_of_loops_and_slow_prompts_are_shown_escaped_and_shortened(page: Path) -> None:
    text = page.read_text()
    assert "gsm8k-3 · loop" in text
    assert "gsm8k-7 · slow: 50 s" in text
    assert "&lt;script&gt;alert" in text
    assert "<script>" not in text
    assert "characters ...]" in text


def test_colours_are_all_the_pages_variables(page: Path) -> None:
    drawings = re.findall(r"<svg.*?</svg>", page.read_text(), flags=re.DOTALL)
    assert len(drawings) == 10
    assert all(not re.search(r"(fill|stroke): #(?!000000)", drawing) for drawing in drawings)
    assert all("var(--ink)" in drawing for drawing in drawings)


def test_names_with_signs_of_markup_and_mathematics_are_drawn_as_they_are(tmp_path: Path) -> None:
    cell = record()
    cell["benchmark"]["spec"] = 'a$b$<&"\\1'
    output = tmp_path / "report.html"
    call(save(tmp_path / "run.json", cell), "--output", output)
    assert "a$b$&lt;&amp;" in output.read_text()
    assert parsed(output).open == []


def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    run = write_run(tmp_path, "run", cells())
    for name in ("one.html", "two.html"):
        call(run, "--output", tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_runs_that_cannot_be_compared_stand_side_by_side_with_the_reason(tmp_path: Path) -> None:
    base, new = save(tmp_path / "a.json", record()), save(tmp_path / "b.json", record(prompts=20))
    assert call(base, new, "--output", tmp_path / "report.html") == 0
    assert "the prompts differ: 40 against 20" in (tmp_path / "report.html").read_text()


def test_a_failed_cell_has_its_reason_in_the_table(tmp_path: Path) -> None:
    failed = record(rounds=[]) | {"status": "failed", "reason": "the server died"}
    call(save(tmp_path / "run.json", failed), "--output", tmp_path / "report.html")
    assert "failed: the server died" in (tmp_path / "report.html").read_text()


def test_rows_cut_in_the_middle_are_said_and_the_page_is_written(tmp_path: Path) -> None:
    run = write_run(tmp_path, "run", cells())
    rows = tmp_path / "run" / "rows" / "1.jsonl"
    rows.write_bytes(rows.read_bytes()[:50])
    assert call(run, "--output", tmp_path / "report.html") == 0
    assert re.search(r"rows/1\.jsonl:1: not a whole line of JSON", (tmp_path / "report.html").read_text())


def test_a_folder_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no run"):
        call(tmp_path, "--output", tmp_path / "report.html")


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--output: .*nowhere.* can't be written"):
        call(save(tmp_path / "run.json", record()), "--output", tmp_path / "nowhere" / "report.html")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")
@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_shows_it_without_error_request_or_overflow(page: Path, width: int, dark: bool) -> None:
    screenshot = page.with_name("page.png")
    seen = visit(page, width, dark=dark, screenshot=screenshot)
    assert seen.requests == [page.resolve().as_uri()]
    assert seen.complaints == []
    assert seen.width <= width
    assert seen.too_wide == []
    assert seen.background == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")
    assert screenshot.stat().st_size > 20_000
    assert seen.pdf_bytes > 20_000

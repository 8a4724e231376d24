"""One item a cell: ids, order, selection, and that nothing happens to tests that are no benchmark."""

from __future__ import annotations

import re
import sys

from tests.plugin.stage import Stage
from tests.support.processes import ROOT, Completed, outer_pytest_removed, pytest_command, running
from tests.support.scripted import Fault, Script
from tests.support.scripted_server import ScriptedServer

NO_CACHE = ("-p", "no:cacheprovider")
LISTS = (
    *("--config-list", "1,0,0,0", "1,3,1,9", "--benchmark-list", "gsm8k:2"),
    *("--config-list", "2,0,0,6", "1,3,1,4", "--benchmark-list", "MTBench:1:math,coding"),
    *("--model-path", "org/model", "--speculative-draft-model-path", "org/draft"),
)
IDS = [
    f"{config}-{benchmark}"
    for config in ("1,0,0,0", "1,3,1,4", "2,0,0,6")
    for benchmark in ("gsm8k:2", "mtbench:1:math,coding")
]


def ids(run: Completed) -> list[str]:
    """The ids that a quiet ``--collect-only`` lists."""
    return re.findall(r"::test_benchmark\[(.+)\]$", run.output, re.MULTILINE)


def test_there_is_one_item_for_each_configuration_and_benchmark_ordered_by_configuration(stage: Stage):
    collect = ["bench_tests", "--collect-only", "-q", *NO_CACHE, *LISTS]
    node = f"bench_tests/test_benchmark.py::test_benchmark[{IDS[3]}]"
    everything, by_word, by_id, default, loud = stage.several(
        collect,
        [*collect, "-k", "gsm8k:2"],
        [node, *collect[1:]],
        ["bench_tests", "--collect-only", "-q", *NO_CACHE],
        ["bench_tests", "--collect-only", *NO_CACHE],
    )
    assert (everything.code, ids(everything)) == (0, IDS)
    assert ids(by_word) == IDS[::2]
    assert ids(by_id) == [IDS[3]]
    assert ids(default)[:2] == ["1,0,0,0-mtbench:80", "1,0,0,0-gsm8k:200"]
    assert len(ids(default)) == 10
    assert "specforge: 2 configurations x 5 benchmarks, embedded engine, sample data" in loud.output
    assert not stage.results.exists(), "collecting writes nothing"


def test_it_works_from_the_checkout_too_where_conftest_and_entry_point_name_the_same_plugin(stage: Stage):
    command = pytest_command("bench_tests", "--collect-only", *LISTS)
    with running(command, cwd=ROOT, environment={}, log=stage.folder / "checkout.log") as program:
        assert program.wait(60) == 0, program.output
    assert program.output.count("specforge: 3 configurations x 2 benchmarks, launching org/model") == 1
    assert program.output.count("<Function test_benchmark[") == 6


def test_tests_that_are_no_benchmark_see_nothing_of_the_harness(stage: Stage):
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "test_plain.py").write_text("def test_plain(tmp_path):\n    assert tmp_path.exists()\n")
    run = stage.pytest("elsewhere", *NO_CACHE)
    assert run.code == 0
    assert "specforge:" not in run.output
    assert not stage.results.exists()
    probe = "import specforge.plugin, sys; print(sorted({m.split('.')[0] for m in sys.modules} & {'numpy', 'aiohttp'}))"
    with running([sys.executable, "-c", probe], cwd=elsewhere, environment=outer_pytest_removed()) as program:
        assert program.wait(60) == 0
    assert program.output.strip() == "[]", "loading the plugin must cost other sessions next to nothing"


def test_x_stops_at_the_first_failed_cell_and_lf_measures_it_alone(stage: Stage):
    """All that MT-Bench asks is refused, so its cells fail."""
    with ScriptedServer(Script(faults=(Fault("status", status=400, containing="Talk"),))) as server:
        matrix = [
            *("bench_tests", "--base-url", server.base_url, *stage.data),
            *("--config-list", "1,0,0,0", "2,0,0,0", "--benchmark-list", "mtbench:1", "gsm8k:2"),
        ]
        stopped, whole, failed_again = stage.several([*matrix, "-x"], matrix, [*matrix, "--lf"])
    assert stopped.code == whole.code == failed_again.code == 1
    assert "1 failed in" in stopped.output
    assert "2 failed, 2 passed in" in whole.output
    assert "2 failed in" in failed_again.output
    assert list(stage.records()) == ["1,0,0,0-mtbench:1", "2,0,0,0-mtbench:1"]
    reason = stage.records()["1,0,0,0-mtbench:1"]["reason"]
    assert re.match(r"1 of 1 requests failed \(--max-failed 0\); the first: \d+: status 400", reason)
    assert reason in failed_again.output

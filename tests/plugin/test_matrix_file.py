"""Options from a file: they are the command line's, which wins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specforge.errors import SpecForgeError, UsageError
from specforge.plugin.matrix_file import read_matrix
from tests.plugin.stage import Stage
from tests.results.records import record, save
from tests.support.scripted_server import ScriptedServer

TOML = """
config_list = ["1,3,1,4"]
benchmark-list = ["gsm8k", "mtbench:2"]
seed = 7
max-new-tokens = 300
judge-api-key = "hidden-key"
extra-body = {ignore_eos = false}

[benchmark.GSM8K]
num-prompts = 3
max_new_tokens = 20
"""
YAML = """
config-list: [ "2,0,0,0" ]
seed: 7
benchmark:
  gsm8k: {num-prompts: 4}
  mtbench: {subset: [writing, math], num-prompts: 1}
"""
# A file, and what the one line says of it.
MISTAKES = {
    "roundz = 3": "unknown key 'roundz'; the nearest known one is 'rounds'",
    'rounds = "five"': "'rounds' is \"five\"; expected an integer",
    "rounds = true": "'rounds' is true; expected an integer",
    "stream = 1": "'stream' is 1; expected true or false",
    "config-list = [1]": "'config-list' is [1]; expected a list of texts, CONFIG",
    'temperature = "hot"': "'temperature' is \"hot\"; expected a number",
    "model-path = 3": "'model-path' is 3; expected a text",
    'sampling = "none"': "'sampling' is \"none\"; expected one of stated, model",
    'model = "a"\nmodel-path = "b"': "'model-path' is there twice",
    "benchmark = 3": "[benchmark]: expected a table for each benchmark",
    "[benchmark.gsm8q]": "unknown dataset 'gsm8q'; did you mean gsm8k?",
    "[benchmark.gsm8k]\nprompts = 3": "[benchmark.gsm8k] unknown key 'prompts'; the nearest known one is 'num-prompts'",
    "[benchmark.gsm8k]\nnum-prompts = 0": "'num-prompts' is 0; expected an integer of at least 1",
    "[benchmark.gsm8k]\nsubset = 3": "'subset' is 3; expected a name or a list of names",
    "[benchmark.gsm8k]\n[benchmark.GSM8K]": "gsm8k is there twice, under two of its names",
    "[benchmark.gsm8k]\nmax-new-tokens = 3\nmax_new_tokens = 4": "a key is there twice, under two of its names",
    f"rounds = {'[' * 3000}{']' * 3000}": "nested too deeply",
    "rounds": "not TOML: ",
    "[": "not TOML: ",
}


def write(folder: Path, name: str, text: str) -> str:
    """A file of the folder, by its path."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_run_from_a_file_asks_what_the_file_says_and_is_repeated_from_its_record(stage: Stage):
    """The second run is of a worker, which is handed the options that xdist does not hand on."""
    matrix = write(stage.folder, "matrix.toml", TOML)
    rows = [f"--dataset-path={name}={name}.jsonl" for name in ("gsm8k", "mtbench")]
    with ScriptedServer() as server:
        asking = ["bench_tests", "--base-url", server.base_url, *rows, "--matrix", matrix, "--seed", "42"]
        once, again = stage.several(
            [*asking, "--benchmark-json", "first.json"], ["bench_tests", "--matrix", "first.json", "-n", "1"]
        )
    assert (once.code, again.code) == (0, 0), once.output + again.output
    saved = (stage.folder / "first.json").read_text(encoding="utf-8")
    first = {entry["param"]: entry["extra_info"] for entry in json.loads(saved)["benchmarks"]}
    assert list(first) == ["1,3,1,4-gsm8k:3", "1,3,1,4-mtbench:2"]
    assert [record["benchmark"]["max_new_tokens"] for record in first.values()] == [20, 300]
    assert {record["benchmark"]["sampling"]["seed"] for record in first.values()} == {42}, "the command line wins"
    options = first["1,3,1,4-gsm8k:3"]["environment"]["options"]
    assert options["max-new-tokens"] == "300,gsm8k=20"
    assert json.loads(options["extra-body"]) == {"ignore_eos": False}
    assert "hidden-key" not in saved
    second = stage.records()
    assert {cell: record["benchmark"] for cell, record in second.items()} == {
        cell: record["benchmark"] for cell, record in first.items()
    }
    assert second["1,3,1,4-mtbench:2"]["environment"]["options"] == options
    assert second["1,3,1,4-mtbench:2"]["environment"]["worker"] == "gw0"


def test_tables_alone_are_the_list_of_benchmarks_and_the_command_line_wins_over_them(tmp_path: Path):
    path = Path(write(tmp_path, "matrix.yaml", YAML))
    assert read_matrix(path, {}) == {
        "config_list": ["2,0,0,0"],
        "seed": 7,
        "benchmark_list": ["gsm8k:4", "mtbench:1:writing,math"],
        "max_new_tokens": None,
    }
    narrowed = read_matrix(path, {"benchmark_list": ["gsm8k", "MTBench:5", "ceval"], "seed": 42})
    assert narrowed["benchmark_list"] == ["gsm8k:4", "mtbench:5:writing,math", "ceval"]
    assert "seed" not in narrowed
    counted = read_matrix(path, {"num_prompts": 9, "max_new_tokens": "50"})
    assert counted["benchmark_list"] == ["gsm8k", "mtbench::writing,math"]
    assert "max_new_tokens" not in counted


def test_a_record_pins_the_revisions_that_the_hub_gave_and_one_without_options_is_refused(tmp_path: Path):
    cells = [record("1,0,0,0", name) for name in ("gsm8k", "mtbench")]
    for cell, kind in zip(cells, ("hub", "file"), strict=True):
        cell["benchmark"]["source"] = {"kind": kind, "location": "somewhere", "revision": "abc"}
        cell["environment"]["options"] = {"benchmark-list": ["gsm8k", "mtbench"], "dataset-revision": "main"}
    assert read_matrix(save(tmp_path / "run.json", *cells), {}) == {
        "benchmark_list": ["gsm8k", "mtbench"],
        "dataset_revision": "gsm8k=abc",
    }
    del cells[0]["environment"]["options"]
    with pytest.raises(UsageError, match="the run does not say its options"):
        read_matrix(save(tmp_path / "old.json", *cells), {})


@pytest.mark.parametrize("text, said", MISTAKES.items())
def test_a_mistake_in_a_file_is_one_line_that_names_it(tmp_path: Path, text: str, said: str):
    path = write(tmp_path, "matrix.toml", text)
    with pytest.raises(UsageError) as error:
        read_matrix(Path(path), {})
    assert str(error.value).startswith(f"--matrix: {path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("m.yaml", "seed: 1\nrounds: 2\nseed: 3", "'seed' is there twice"),
        ("m.yaml", "extra-body: &body {a: *body}", "recursive"),
        ("m.yaml", f"rounds: {'[' * 3000}{']' * 3000}", "nested too deeply"),
        ("a.yaml", "rounds: [", "not YAML: "),
        ("b.yml", "- rounds", "found list, expected options by their names"),
        ("c.json", "{}", "no record of a benchmark"),
        ("d.ini", "", "expected a name that ends in .toml, .yaml, .yml, .json"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path, name: str, text: str, said: str):
    with pytest.raises(SpecForgeError) as error:
        read_matrix(Path(write(tmp_path, name, text)), {})
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_may_begin_with_a_byte_order_mark_and_share_values_by_merging(tmp_path: Path):
    toml = write(tmp_path, "matrix.toml", "\ufeffrounds = 2\r\n")
    yaml = write(tmp_path, "matrix.yaml", "\ufeff<<: &shared {rounds: 3, seed: 1}\nrounds: 2\n")
    assert read_matrix(Path(toml), {}) == {"rounds": 2}
    assert read_matrix(Path(yaml), {}) == {"rounds": 2, "seed": 1}

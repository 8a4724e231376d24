"""Every mistake that can be known is one line and exit code 4, before anything is started or written."""

from __future__ import annotations

import re

from tests.plugin.stage import Stage
from tests.support.processes import Completed

LAUNCH = ("--model-path", "org/model")
TARGET = ("--config-list", "1,0,0,0")
CHAIN = ("--config-list", "1,3,1,4")
# What is given, and what the one line must hold.
MISTAKES = (
    (("--config-list", "1,2,3"), "--config-list: '1,2,3'"),
    (("--config-list", "1,x,0,0"), "--config-list: '1,x,0,0'"),
    (("--config-list", "1,-1,0,0"), "--config-list: '1,-1,0,0'"),
    (("--config-list", "0,0,0,0"), "batch size must be at least 1"),
    (("--config-list", "1,0,2,4"), "topk without steps"),
    (("--config-list", "1,2,0,4"), "steps need a topk"),
    (("--config-list", "1,2,2,8"), "8 draft tokens are more than this tree holds"),
    (("--config-list", "1,0,0,0", "bench_tests"), "paths go before options that take lists: pytest bench_tests"),
    (("--benchmark-list", "gsm8k:2", "bench_tests/test_benchmark.py"), "'bench_tests/test_benchmark.py' is a path"),
    (("--benchmark-list", "gsm8k:0"), "--benchmark-list: 'gsm8k:0'"),
    (("--benchmark-list", "gsm8k:many"), "'many'; expected a positive integer"),
    (("--benchmark-list", "gsm8q"), "--benchmark-list: unknown dataset 'gsm8q'"),
    (("--benchmark-list", "mtbench:5:juggling"), "juggling"),
    (("--benchmark-list", "mtbench:5:math,"), "empty subset name"),
    (("--matrix", "nowhere.toml"), "--matrix: 'nowhere.toml' can't be read: No such file or directory"),
    (("--matrix", "wrong.toml"), "--config-list: '1,2,3' is not a configuration"),
    (("--matrix", "wrong.toml", "--dry-run"), "--config-list: '1,2,3'"),
    (("--few-shot", "-1"), "--few-shot: -1"),
    (("--rounds", "0"), "--rounds: 0"),
    (("--num-prompts", "0"), "--num-prompts: 0"),
    (("--max-new-tokens", "0"), "--max-new-tokens: 0"),
    (("--max-new-tokens", "9,gsm8q=5"), "--max-new-tokens: unknown dataset 'gsm8q'; did you mean gsm8k?"),
    (("--max-new-tokens", "gsm8k=5,GSM8K=6"), "has two limits for gsm8k"),
    (("--max-failed", "-1"), "--max-failed: -1"),
    (("--request-timeout", "0"), "--request-timeout: 0"),
    (("--timeout-for-server-launch", "0"), "--timeout-for-server-launch: 0"),
    (("--port", "70000"), "--port: 70000"),
    (("--tp", "0"), "--tp-size: 0"),
    (("--port", "first"), "--port"),
    (("--sampling", "none"), "--sampling"),
    (("--base-url", "ftp://host"), "--base-url: 'ftp://host'"),
    (("--header", "no colon"), "--header: 'no colon'"),
    (("--extra-body", "{"), "--extra-body: '{' is not JSON"),
    (("--extra-body", "[1]"), "--extra-body: '[1]' is not a JSON object"),
    (("--chat-template-kwargs", "3"), "--chat-template-kwargs: '3'"),
    (("--server-args", "'"), "--server-args"),
    ((*LAUNCH, "--launch-command", "'"), "--launch-command"),
    ((*LAUNCH, "--server-args", "--speculative-num-steps 3"), "--server-args: --speculative-num-steps is set there"),
    (("--model", "./nowhere"), "--model-path: ./nowhere does not exist"),
    ((*LAUNCH, *CHAIN, "--speculative-draft-model-path", "/nowhere"), "--speculative-draft-model-path: /nowhere"),
    ((*LAUNCH, *CHAIN), "--speculative-draft-model-path is missing"),
    ((*LAUNCH, *CHAIN, "--speculative-algorithm", "NGRAM"), "--speculative-algorithm NGRAM"),
    (("--dataset-path", "gsm8k"), "--dataset-path: 'gsm8k' is not NAME=FILE"),
    (("--dataset-path", "gsm8k=/nowhere.jsonl"), "/nowhere.jsonl"),
    (("--dataset-path", "gsm8q=gsm8k.jsonl"), "--dataset-path: unknown dataset 'gsm8q'"),
    ((*LAUNCH, *TARGET, "--benchmark-list", "gsm8k:2", "--dataset-path", "gsm8k=bad.jsonl"), "bad.jsonl"),
    (("--benchmark-list", "gsm8k:2", "--output-dir", "gsm8k.jsonl"), "--output-dir: 'gsm8k.jsonl'"),
)  # fmt: skip


def complaint(run: Completed) -> str:
    """The one line that says what is wrong; of argparse's own complaints the line behind the usage."""
    (line,) = re.findall(r"^(?:ERROR: (?!usage).*|.*error: argument .*)$", run.output, re.MULTILINE)
    return str(line)


def test_each_mistake_is_one_line_and_exit_4_before_anything_starts(stage: Stage):
    (stage.folder / "bad.jsonl").write_text('{"question": "whole", "answer": "#### 1"}\n{"question": "hal')
    (stage.folder / "wrong.toml").write_text('config-list = ["1,2,3"]')
    runs = stage.several(*(["bench_tests", "-p", "no:cacheprovider", *given] for given, _ in MISTAKES))
    found = {given: (run.code, complaint(run)) for (given, _), run in zip(MISTAKES, runs, strict=True)}
    wrong = {given: found[given] for given, said in MISTAKES if found[given][0] != 4 or said not in found[given][1]}
    assert wrong == {}
    assert [run.output for run in runs if "Traceback" in run.output] == []
    assert not stage.results.exists()


def test_what_a_configuration_file_says_is_checked_as_early_and_a_dataset_s_name_is_no_path(stage: Stage):
    (stage.folder / "pytest.ini").write_text("[pytest]\naddopts = --rounds=0\n")
    (stage.folder / "gsm8k").mkdir()
    lists = ["--config-list", "1,0,0,0", "--benchmark-list", "gsm8k"]
    wrong, right = stage.several(
        ["bench_tests", "-p", "no:cacheprovider"], ["bench_tests", "--collect-only", "-q", "--rounds=1", *lists]
    )
    assert (wrong.code, complaint(wrong)) == (4, "ERROR: --rounds: 0 is not at least 1")
    assert right.code == 0
    assert "test_benchmark[1,0,0,0-gsm8k]" in right.output

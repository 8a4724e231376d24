"""SGLang's command line."""

import pytest

from specforge.engine.arguments import parse
from specforge.errors import UsageError

MODEL = ["--model-path", "m"]
EAGLE = [*MODEL, "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "d"]


def shape(steps: int, topk: int, nodes: int) -> list[str]:
    return [
        "--speculative-num-steps",
        str(steps),
        "--speculative-eagle-topk",
        str(topk),
        "--speculative-num-draft-tokens",
        str(nodes),
    ]


def test_what_the_launcher_passes_is_honoured_without_a_warning() -> None:
    passed = (
        "--model-path m --host 127.0.0.1 --port 31000 --max-running-requests 4 --cuda-graph-max-bs-decode 4 "
        "--cuda-graph-max-bs 4 --random-seed 3 --enable-metrics"
    )
    arguments = parse(passed.split())
    assert (arguments.host, arguments.port, arguments.max_running_requests) == ("127.0.0.1", 31000, 4)
    assert (arguments.random_seed, arguments.enable_metrics) == (3, True)
    assert arguments.warnings == ()


@pytest.mark.parametrize(
    "flags",
    [
        ["--attention-backend", "fa3"],
        ["--mem-fraction-static", "0.5"],
        ["--enable-torch-compile"],
        ["--lora-paths", "a", "b"],
    ],
    ids=lambda flags: flags[0],
)
def test_a_flag_of_sglang_without_effect_is_named_in_a_warning(flags: list[str]) -> None:
    (warning,) = parse([*MODEL, *flags]).warnings
    assert warning.startswith(f"{flags[0]} has no effect")


@pytest.mark.parametrize("flag", ["--no-such-flag", "--model-pat", "--speculative-num-step"])
def test_an_unknown_flag_ends_with_2(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*MODEL, flag, "1"])
    assert ended.value.code == 2
    assert flag in capsys.readouterr().err


def test_aliases_are_sglangs() -> None:
    arguments = parse(["--model", "m", "--speculative-draft-model", "d", "--speculative-algorithm", "EAGLE3"])
    assert (arguments.model_path, arguments.speculative_draft_model_path) == ("m", "d")


def test_speculation_without_a_shape_gets_sglangs() -> None:
    arguments = parse(EAGLE)
    assert (arguments.speculative_num_steps, arguments.speculative_eagle_topk) == (5, 4)
    assert arguments.speculative_num_draft_tokens == 8


def test_speculation_runs_48_requests_unless_told_otherwise() -> None:
    assert parse(EAGLE).max_running_requests == 48


def test_the_algorithm_is_known_in_any_case() -> None:
    assert parse([*MODEL, "--speculative-algorithm", "ngram"]).speculative_algorithm == "NGRAM"


def test_ngram_reports_what_sglang_reports() -> None:
    arguments = parse([*MODEL, "--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "6"])
    assert (arguments.speculative_num_steps, arguments.speculative_eagle_topk) == (0, 10)
    assert arguments.speculative_num_draft_tokens == 6


def test_a_chain_has_one_node_more_than_steps() -> None:
    arguments = parse([*EAGLE, *shape(3, 1, 9)])
    assert arguments.speculative_num_draft_tokens == 4
    assert arguments.warnings == ("--speculative-num-draft-tokens is 4, not 9: all that a chain has",)


@pytest.mark.parametrize(
    "flags, reason",
    [
        ([*EAGLE, *shape(2, 2, 8)], "--speculative-num-draft-tokens: found 8, expected at most 7"),
        (
            [*EAGLE, "--speculative-num-steps", "3"],
            "--speculative-eagle-topk, --speculative-num-draft-tokens: give all",
        ),
        ([*EAGLE, *shape(0, 1, 1)], "expected at least 1, 1, 2"),
        ([*MODEL, "--speculative-algorithm", "EAGLE3"], "--speculative-draft-model-path: EAGLE3 needs a draft"),
        ([*MODEL, "--speculative-algorithm", "MEDUSA"], "expected EAGLE3, STANDALONE, NGRAM, found MEDUSA"),
        ([*MODEL, "--port", "70000"], "--port: expected a number below 65536, found 70000"),
        ([*MODEL, "--max-running-requests", "0"], "--max-running-requests: expected at least 1, found 0"),
    ],
)
def test_what_can_not_be_run_is_refused_before_loading(flags: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse(flags)


def test_the_key_is_not_shown() -> None:
    assert "secret" not in str(parse([*MODEL, "--api-key", "secret"]).as_json())

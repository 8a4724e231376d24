"""The server's command line, and what is refused before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from specforge.backends.command import algorithm_for, check_launch, server_command, settled, without_secrets
from specforge.backends.flags import KnownFlags
from specforge.backends.options import LaunchOptions
from specforge.errors import UsageError
from specforge.matrix import SpecConfig

TARGET = SpecConfig.parse("4,0,0,0")
CHAIN = SpecConfig.parse("1,3,1,4")
NO_STEPS = SpecConfig.parse("2,0,0,8")


def options(**given: Any) -> LaunchOptions:
    return LaunchOptions(**{"model_path": "org/model", "port": 31000, **given})


def flags_of(config: SpecConfig, known: KnownFlags | None = None, **given: Any) -> list[str]:
    made = settled(options(launch_command=("serve",), **given))
    return server_command(config, made, known or KnownFlags())[1:]


def value(words: list[str], flag: str) -> str:
    assert words.count(flag) == 1
    return words[words.index(flag) + 1]


def test_the_target_only_command_has_every_flag_that_is_always_passed_and_none_of_speculation():
    assert flags_of(TARGET) == [
        *("--model-path", "org/model", "--host", "127.0.0.1", "--port", "31000"),
        *("--max-running-requests", "4", "--cuda-graph-max-bs-decode", "4", "--random-seed", "42", "--enable-metrics"),
    ]


def test_a_configuration_with_steps_passes_all_three_numbers_and_the_draft():
    words = flags_of(CHAIN, speculative_draft_model_path="org/draft")
    assert words[words.index("--speculative-algorithm") :] == [
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "org/draft"),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    ]


def test_an_algorithm_without_steps_gets_its_draft_tokens_only():
    words = flags_of(NO_STEPS, speculative_draft_model_path="org/draft-of-the-other-configurations")
    assert words[words.index("--speculative-algorithm") :] == [
        *("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "8"),
    ]


def test_the_target_only_configuration_ignores_the_algorithm_and_the_draft():
    words = flags_of(TARGET, speculative_algorithm="EAGLE3", speculative_draft_model_path="org/draft")
    assert not [word for word in words if word.startswith("--speculative")]


def test_common_options_are_handed_on_under_sglangs_names():
    words = flags_of(
        TARGET,
        tp_size=2,
        mem_fraction_static=0.8,
        attention_backend="fa3",
        dtype="bfloat16",
        quantization="fp8",
        ep_size=2,
        trust_remote_code=True,
        disable_radix_cache=True,
        api_key="secret",
    )
    assert words[words.index("--enable-metrics") + 1 :] == [
        *("--tp-size", "2", "--mem-fraction-static", "0.8", "--attention-backend", "fa3", "--dtype", "bfloat16"),
        *("--quantization", "fp8", "--ep-size", "2", "--api-key", "secret"),
        *("--trust-remote-code", "--disable-radix-cache"),
    ]


def test_the_older_name_of_the_graph_limit_is_used_where_the_version_wants_it():
    words = flags_of(TARGET, KnownFlags("--cuda-graph-max-bs"))
    assert value(words, "--cuda-graph-max-bs") == "4"
    assert "--cuda-graph-max-bs-decode" not in words


@pytest.mark.parametrize(
    "server_args, dropped",
    [
        (("--max-running-requests", "64"), "--max-running-requests"),
        (("--max-running-requests=64",), "--max-running-requests"),
        (("--tp", "4"), "--tp-size"),
        (("--tensor-parallel-size", "4"), "--tp-size"),
        (("--model", "org/other"), "--model-path"),
        (("--cuda-graph-max-bs", "9"), "--cuda-graph-max-bs-decode"),
    ],
)
def test_server_args_come_last_and_replace_the_harness_flag(server_args: tuple[str, ...], dropped: str):
    words = flags_of(TARGET, tp_size=2, server_args=server_args)
    assert tuple(words[-len(server_args) :]) == server_args
    assert dropped not in words[: -len(server_args)]


def test_server_args_are_otherwise_untouched():
    words = flags_of(TARGET, server_args=("--chunked-prefill-size", "-1", "--json-model-override-args", '{"a": 1}'))
    assert words[-4:] == ["--chunked-prefill-size", "-1", "--json-model-override-args", '{"a": 1}']


def test_what_server_args_override_is_known_to_the_harness():
    made = settled(
        options(
            server_args=("--port", "5", "--host=::1", "--random-seed", "7", "--model", "other", "--api-key", "k"),
            api_key="not this",
        )
    )
    assert (made.port, made.host, made.seed, made.model_path, made.api_key) == (5, "::1", 7, "other", "k")


def test_a_home_folder_in_a_model_path_is_expanded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert settled(options(model_path="~/model")).model_path == "/home/someone/model"


@pytest.mark.parametrize(
    "flag",
    [
        "--speculative-algorithm",
        "--speculative-num-steps",
        "--speculative-eagle-topk",
        "--speculative-num-draft-tokens",
    ],
)
def test_server_args_may_not_change_what_a_record_is_filed_under(flag: str):
    with pytest.raises(UsageError, match=f"--server-args: {flag} "):
        settled(options(server_args=(flag, "5")))


def test_a_malformed_port_in_server_args_is_named():
    with pytest.raises(UsageError, match="--server-args: --port is 'x'; expected an integer"):
        settled(options(server_args=("--port", "x")))


@pytest.mark.parametrize(
    "config, asked, expected",
    [
        (TARGET, "eagle", None),
        (CHAIN, None, "EAGLE3"),
        (CHAIN, "standalone", "STANDALONE"),
        (CHAIN, "Eagle", "EAGLE"),
        (CHAIN, "my_plugin", "MY_PLUGIN"),
        (NO_STEPS, None, "NGRAM"),
        (NO_STEPS, "dflash", "DFLASH"),
    ],
)
def test_the_algorithm_follows_from_the_configuration_unless_it_is_given(
    config: SpecConfig, asked: str | None, expected: str | None
):
    made = options(speculative_algorithm=asked, speculative_draft_model_path="org/draft")
    assert algorithm_for(config, made) == expected


@pytest.mark.parametrize("algorithm", [None, "EAGLE", "eagle3", "Standalone"])
def test_a_missing_draft_model_is_refused(algorithm: str | None):
    with pytest.raises(UsageError, match="--speculative-draft-model-path is missing"):
        algorithm_for(CHAIN, options(speculative_algorithm=algorithm))


def test_a_draft_model_in_server_args_counts():
    words = ("--speculative-draft-model", "org/draft")
    assert algorithm_for(CHAIN, options(server_args=words)) == "EAGLE3"


def test_nextn_needs_no_draft_model_of_its_own():
    assert algorithm_for(CHAIN, options(speculative_algorithm="NEXTN")) == "NEXTN"


def test_ngram_with_steps_is_refused():
    with pytest.raises(UsageError, match=r"--speculative-algorithm ngram: .*1,3,1,4"):
        algorithm_for(CHAIN, options(speculative_algorithm="ngram"))


def test_eagle_without_steps_is_refused():
    with pytest.raises(UsageError, match="--config-list: 2,0,0,8 has no draft steps"):
        algorithm_for(NO_STEPS, options(speculative_algorithm="EAGLE3", speculative_draft_model_path="d"))


@pytest.mark.parametrize("path", ["/no/such/model", "./no-such-model", "../no-such-model", "~/no-such-model"])
def test_a_model_path_that_looks_like_one_must_exist(path: str):
    with pytest.raises(UsageError, match=r"--model-path: .*no.such.model does not exist"):
        check_launch(TARGET, options(model_path=path))


def test_a_draft_path_that_looks_like_one_must_exist():
    with pytest.raises(UsageError, match="--speculative-draft-model-path: /no/such/draft does not exist"):
        check_launch(CHAIN, options(speculative_draft_model_path="/no/such/draft"))


def test_existing_folders_and_hub_ids_pass(tmp_path: Path):
    check_launch(CHAIN, options(model_path=str(tmp_path), speculative_draft_model_path="org/draft"))


def test_paths_in_a_container_are_not_looked_for_here():
    check_launch(TARGET, options(model_path="/models/m", stop_command=("docker", "stop", "bench")))


def test_the_port_is_put_where_the_launch_command_wants_it():
    made = options(launch_command=("docker", "run", "--name", "bench-{port}", "image"))
    assert server_command(TARGET, made, KnownFlags())[:5] == ["docker", "run", "--name", "bench-31000", "image"]


def test_the_default_launch_command_is_this_interpreters_sglang():
    assert server_command(TARGET, options(), KnownFlags())[:3] == [sys.executable, "-m", "sglang.launch_server"]


def test_keys_are_starred_out_of_what_is_shown():
    shown = without_secrets(["serve", "--api-key", "secret", "--admin-api-key=secret", "--port", "1"])
    assert shown == ["serve", "--api-key", "***", "--admin-api-key=***", "--port", "1"]

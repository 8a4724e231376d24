"""What the options mean, once they are known to be right."""

from __future__ import annotations

from typing import Any

import pytest

from specforge.plugin.options import option
from specforge.plugin.settings import Settings, read_settings

GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


@pytest.fixture
def settings(pytestconfig: pytest.Config) -> Any:
    """Settings where only the options named are given."""

    def read(**given: Any) -> Settings:
        return read_settings(lambda name: given[name] if name in given else option(pytestconfig, name))

    return read


def test_each_sampling_parameter_is_stated_and_can_be_changed(settings: Any):
    assert settings().sampling.values == GREEDY
    changed = settings(temperature=0.6, top_p=0.95, top_k=20, seed=7).sampling
    assert changed.values == {**GREEDY, "temperature": 0.6, "top_p": 0.95, "top_k": 20}
    assert changed.seed == 7


def test_sampling_left_to_the_model_states_what_was_given_only(settings: Any):
    assert settings(sampling="model").sampling.values == {}
    assert settings(sampling="model", temperature=0.6).sampling.values == {"temperature": 0.6}


def test_bodies_and_template_arguments_are_json_objects(settings: Any):
    sampling = settings(extra_body='{"ignore_eos": true}', chat_template_kwargs='{"effort": "low"}').sampling
    assert sampling.extra_body == {"ignore_eos": True}
    assert sampling.template_kwargs == {"effort": "low"}
    thinking = settings(enable_thinking=True, chat_template_kwargs='{"effort": "low"}').sampling
    assert thinking.template_kwargs == {"effort": "low", "enable_thinking": True}


def test_a_number_of_prompts_is_for_the_benchmarks_that_name_none(settings: Any):
    specs = settings(benchmark_list=["gsm8k", "mtbench:3", "ceval::law"], num_prompts=7).benchmarks
    assert [str(spec) for spec in specs] == ["gsm8k:7", "mtbench:3", "ceval:7:law"]


def test_a_token_limit_is_for_every_benchmark_or_for_those_it_names(settings: Any):
    assert settings().max_new_tokens.of("gsm8k", 2048) == 2048
    every = settings(max_new_tokens="50").max_new_tokens
    assert (every.of("gsm8k", 2048), str(every)) == (50, "50")
    some = settings(max_new_tokens="50, GSM8K=7,mmlu = 9").max_new_tokens
    assert [some.of(name, 2048) for name in ("gsm8k", "mmlu", "ceval")] == [7, 9, 50]
    assert str(some) == "50,gsm8k=7,mmlu=9"
    assert settings(max_new_tokens="gsm8k=7").max_new_tokens.of("ceval", 2048) == 2048


def test_worked_examples_are_the_dataset_s_own_number_unless_one_is_given(settings: Any):
    assert (settings().load.few_shot, settings(few_shot=0).load.few_shot) == (None, 0)


def test_all_configurations_are_clamped_by_the_largest_tree_of_the_run(settings: Any):
    given = {"model_path": "org/m", "speculative_draft_model_path": "org/d"}
    assert settings(config_list=["1,0,0,0", "8,3,1,4", "1,5,4,16"], **given).largest_tree == 16


@pytest.mark.parametrize(
    "given, backend, urls",
    [
        ({}, "embedded", []),
        ({"model_path": "org/m", "speculative_draft_model_path": "org/d"}, "launch", []),
        ({"skip_launch_server": True}, "attach", ["http://127.0.0.1:30000"]),
        ({"skip_launch_server": True, "port": 8000, "host": "gpu"}, "attach", ["http://gpu:8000"]),
        ({"base_url": ["https://a/x/v1", "b:1"], "model_path": "org/m"}, "attach", ["https://a/x", "http://b:1"]),
    ],
)
def test_what_serves_follows_from_what_was_given(settings: Any, given: dict[str, Any], backend: str, urls: list[str]):
    found = settings(**given)
    assert found.backend == backend
    assert [endpoint.base_url for endpoint in found.endpoints] == urls
    assert (found.launch is None) == (backend == "attach")


def test_keys_and_headers_go_to_the_server_that_is_attached_to(settings: Any):
    (endpoint,) = settings(base_url=["host"], api_key="k", header=["X-Team: red"]).endpoints
    assert endpoint.headers() == {"X-Team": "red", "Authorization": "Bearer k"}


def test_a_launch_is_told_every_flag_in_words(settings: Any):
    launch = settings(
        model_path="org/m",
        config_list=["1,0,0,0"],
        launch_command="docker run 'a b' python",
        stop_command="docker stop x",
        server_args="--context-length 4096 --kv-cache-dtype 'fp8 e5m2'",
        tp_size=2,
        disable_radix_cache=True,
    ).launch
    assert launch.launch_command == ("docker", "run", "a b", "python")
    assert launch.stop_command == ("docker", "stop", "x")
    assert launch.server_args == ("--context-length", "4096", "--kv-cache-dtype", "fp8 e5m2")
    assert (launch.model_path, launch.tp_size, launch.disable_radix_cache, launch.seed) == ("org/m", 2, True, 42)


def test_without_a_model_the_embedded_engine_serves_its_own_pair_on_sample_rows(settings: Any):
    found = settings()
    assert found.launch.model_path.endswith("target")
    assert found.launch.speculative_draft_model_path.endswith("eagle3")
    assert "specforge.engine" in found.launch.launch_command
    assert found.load.samples
    assert not settings(model_path="org/m", config_list=["1,0,0,0"]).load.samples

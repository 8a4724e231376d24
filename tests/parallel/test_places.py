"""Which worker gets which devices, or which server; everything that is refused before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import execnet
import pytest

from specforge.errors import UsageError
from specforge.plugin.parallel.places import (
    THIS_MACHINE,
    Numbers,
    Place,
    check_workers,
    describe_workers,
    devices_of,
    machine_of,
    machines_of,
    sharing_warnings,
)
from specforge.plugin.settings import Settings, read_settings
from tests.parallel.given import options

EIGHT = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}
LAUNCHING = {"model_path": "org/model", "speculative_draft_model_path": "org/draft"}
URLS = ["http://127.0.0.1:30000", "http://127.0.0.1:30001"]


def settings(**given: Any) -> Settings:
    return read_settings(options(**given).__getitem__)


def place(share: int, shares: int) -> Place:
    return Place(
        worker=f"gw{share}",
        number=share,
        workers=shares,
        share=share,
        shares=shares,
        output_dir=None,
        run="run",
        started="2026-01-01T00:00:00+00:00",
    )


def here(workers: int) -> list[str]:
    return [THIS_MACHINE] * workers


@pytest.mark.parametrize("workers", range(1, 9))
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_every_worker_has_tp_devices_of_its_own_or_nothing_starts(tp: int, workers: int):
    asked = settings(**LAUNCHING, tp_size=tp)
    if workers * tp > 8:
        with pytest.raises(UsageError, match=rf"-n {workers}: 8 visible devices make {8 // tp} shares of {tp} "):
            check_workers(asked, here(workers), EIGHT)
        return
    check_workers(asked, here(workers), EIGHT)
    shares = [devices_of(asked, place(share, workers), EIGHT).environment for share in range(workers)]
    devices = [share["CUDA_VISIBLE_DEVICES"].split(",") for share in shares]
    assert [len(share) for share in devices] == [tp] * workers
    assert sorted(device for share in devices for device in share) == [str(number) for number in range(workers * tp)]


def test_named_devices_are_divided_instead_of_the_visible_ones():
    asked = settings(**LAUNCHING, gpus="6,4,2,0", tp_size=2)
    assert devices_of(asked, place(1, 2), EIGHT).environment == {"CUDA_VISIBLE_DEVICES": "2,0"}


def test_without_workers_the_named_devices_are_shown_and_none_are_hidden_otherwise():
    assert devices_of(settings(**LAUNCHING, gpus="6,4"), None, EIGHT).environment == {"CUDA_VISIBLE_DEVICES": "6,4"}
    assert devices_of(settings(**LAUNCHING), None, EIGHT).environment == {}


def test_without_workers_a_server_must_fit_too():
    with pytest.raises(UsageError, match="--tp-size: a server of 4 devices does not fit into the 2 visible ones"):
        check_workers(settings(**LAUNCHING, gpus="0,1", tp_size=4), here(1), EIGHT)


@pytest.mark.parametrize("given", [{}, {**LAUNCHING, "server_args": "--device cpu"}], ids=["embedded", "device cpu"])
def test_servers_on_the_cpu_take_no_devices_and_their_records_say_so(given: dict[str, Any]):
    asked = settings(**given)
    check_workers(asked, here(16), EIGHT)
    devices = devices_of(asked, place(3, 16), EIGHT)
    assert devices.environment == {}
    assert sharing_warnings(asked, place(3, 16), devices) == [
        "16 servers at once on one machine's CPU: their times are not comparable"
    ]
    assert sharing_warnings(asked, place(0, 1), devices) == []


def test_servers_with_devices_of_their_own_are_comparable():
    asked = settings(**LAUNCHING)
    assert sharing_warnings(asked, place(0, 8), devices_of(asked, place(0, 8), EIGHT)) == []


@pytest.mark.parametrize(
    "given, workers, message",
    [
        (
            {"base_url": URLS[:1]},
            2,
            "--base-url: 2 workers for 1 server; expected a server for each worker, or --share",
        ),
        ({"skip_launch_server": True}, 3, "--base-url: 3 workers for 1 server; "),
        ({"base_url": URLS}, 1, "--base-url: 2 servers for 1 worker; expected -n 2"),
        ({**LAUNCHING, "port": 31000}, 2, "--port: 31000 can't be the port of 2 servers at once; "),
        ({**LAUNCHING, "shared_server": True}, 2, "--shared-server: each configuration launches its own server; "),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(given: dict[str, Any], workers: int, message: str):
    with pytest.raises(UsageError) as raised:
        check_workers(settings(**given), here(workers), {})
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "given, workers",
    [
        ({"base_url": URLS}, 2),
        ({"base_url": URLS[:1], "shared_server": True}, 4),
        ({**LAUNCHING, "port": 31000}, 1),
    ],
)
def test_what_can_run_is_not_refused(given: dict[str, Any], workers: int):
    check_workers(settings(**given), here(workers), {})


def test_one_port_on_each_of_several_machines_is_fine():
    check_workers(settings(**LAUNCHING, port=31000), ["a", "b"], {})


def test_the_devices_of_other_machines_are_their_own_affair():
    check_workers(settings(**LAUNCHING, tp_size=8), ["a", "b", THIS_MACHINE], EIGHT)


def test_a_shared_server_is_told_in_the_records():
    asked = settings(base_url=URLS[:1], shared_server=True)
    assert sharing_warnings(asked, place(0, 2), devices_of(asked, place(0, 2), EIGHT)) == [
        "--shared-server: 2 workers load one server at once"
    ]


@pytest.mark.parametrize(
    "spec, machine",
    [
        ("popen", THIS_MACHINE),
        ("popen//python=python3//chdir=elsewhere", THIS_MACHINE),
        ("ssh=user@one//chdir=work", "user@one"),
        ("socket=10.0.0.7:8888", "10.0.0.7"),
        ("popen//via=proxy", "via proxy"),
    ],
)
def test_the_machine_of_an_execution_environment(spec: str, machine: str):
    assert machine_of(execnet.XSpec(spec)) == machine


def test_execution_environments_may_be_given_several_times_over():
    assert machines_of(["2*popen", "ssh=one", "2*ssh=two//chdir=a*b"]) == [*here(2), "one", "two", "two"]


@pytest.mark.parametrize(
    "given, machines, line",
    [
        ({**LAUNCHING, "tp_size": 4}, here(2), "2 workers, devices 0,1,2,3 | 4,5,6,7"),
        ({}, here(2), "2 workers on this machine's CPU: the times of servers that run at once are not comparable"),
        ({"base_url": URLS}, here(2), "2 workers on 2 servers"),
        (LAUNCHING, ["a", "a", "b"], "3 workers on 2 machines"),
    ],
)
def test_the_header_says_what_workers_have(given: dict[str, Any], machines: Sequence[str], line: str):
    assert describe_workers(settings(**given), machines, EIGHT) == line


def test_a_number_that_was_given_back_is_the_next_to_be_taken():
    numbers = Numbers()
    assert [numbers.take("a", "gw0"), numbers.take("a", "gw1"), numbers.take("b", "gw2")] == [0, 1, 0]
    numbers.give_back("gw0")
    assert [numbers.take("a", "gw3"), numbers.take("a", "gw4")] == [0, 2]

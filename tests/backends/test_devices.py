"""Dividing GPUs among workers, with environments that pretend to have some."""

from __future__ import annotations

from typing import Any

import pytest

from specforge.backends.devices import Devices, devices_per_server, divide, visible_devices
from specforge.backends.options import LaunchOptions
from specforge.errors import UsageError

EIGHT = tuple("01234567")


def none_installed() -> tuple[str, ...]:
    return ()


def eight_installed() -> tuple[str, ...]:
    return EIGHT


@pytest.mark.parametrize(
    "environment, ids, variable",
    [
        ({}, EIGHT, "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": "2,3"}, ("2", "3"), "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8a, GPU-9b"}, ("GPU-8a", "GPU-9b"), "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": ""}, (), "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, (), "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": "0,1,-1,2"}, ("0", "1"), "CUDA_VISIBLE_DEVICES"),
        ({"HIP_VISIBLE_DEVICES": "1,2"}, ("1", "2"), "HIP_VISIBLE_DEVICES"),
        ({"ROCR_VISIBLE_DEVICES": "4"}, ("4",), "ROCR_VISIBLE_DEVICES"),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "0"}, ("0",), "HIP_VISIBLE_DEVICES"),
    ],
)
def test_the_environment_decides_and_else_what_is_installed(
    environment: dict[str, str], ids: tuple[str, ...], variable: str
):
    assert visible_devices(environment, None, eight_installed) == Devices(ids, variable)


def test_naming_devices_overrides_the_environment():
    found = visible_devices({"HIP_VISIBLE_DEVICES": "0,1"}, "4, 5", eight_installed)
    assert found == Devices(("4", "5"), "HIP_VISIBLE_DEVICES")


@pytest.mark.parametrize("gpus", ["", "0,,1", "0,0"])
def test_malformed_device_lists_are_refused(gpus: str):
    with pytest.raises(UsageError, match="--gpus: "):
        visible_devices({}, gpus, eight_installed)


def size_of(**given: Any) -> int:
    return devices_per_server(LaunchOptions(model_path="m", **given))


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, 1),
        ({"tp_size": 4}, 4),
        ({"server_args": ("--tp", "2", "--pp-size", "2")}, 4),
        ({"tp_size": 4, "server_args": ("--tensor-parallel-size=2",)}, 2),
        ({"tp_size": 2, "server_args": ("--data-parallel-size", "3")}, 6),
        ({"tp_size": 4, "server_args": ("--dp-size", "4", "--enable-dp-attention")}, 4),
    ],
)
def test_a_server_takes_tp_times_pp_times_dp_devices(given: dict[str, Any], expected: int):
    assert size_of(**given) == expected


def test_a_size_below_one_is_refused():
    with pytest.raises(UsageError, match="--tp-size is 0"):
        size_of(tp_size=0)


@pytest.mark.parametrize("workers", range(1, 9))
@pytest.mark.parametrize("per_server", [1, 2, 4])
def test_shares_are_disjoint_and_as_large_as_a_server_or_refused(per_server: int, workers: int):
    devices = Devices(EIGHT)
    if workers * per_server > 8:
        with pytest.raises(UsageError, match=rf"-n {workers}: 8 visible devices make {8 // per_server} shares"):
            divide(devices, per_server, workers)
        return
    shares = divide(devices, per_server, workers)
    assert [len(share.ids) for share in shares] == [per_server] * workers
    assert len({device for share in shares for device in share.ids}) == per_server * workers


def test_a_share_shows_its_devices_under_the_variable_they_came_from():
    shares = divide(Devices(("4", "5", "6", "7"), "HIP_VISIBLE_DEVICES"), 2, 2)
    assert [share.environment for share in shares] == [{"HIP_VISIBLE_DEVICES": "4,5"}, {"HIP_VISIBLE_DEVICES": "6,7"}]


def test_a_server_larger_than_the_machine_is_refused():
    with pytest.raises(UsageError, match="--tp-size: a server of 4 devices does not fit into the 2 visible ones"):
        divide(Devices(("0", "1")), 4, 1)


def test_without_devices_every_worker_gets_an_environment_left_alone():
    shares = divide(visible_devices({}, None, none_installed), 1, 3)
    assert [share.environment for share in shares] == [{}, {}, {}]

"""Ports: free ones, and never one for two servers."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from specforge.backends.ports import claim_port, connect_host, is_free, wait_until_free
from specforge.errors import UsageError
from tests.support.processes import ROOT, free_port, running

CLAIMER = """
import signal, sys
from specforge.backends.ports import claim_port
claim = claim_port("127.0.0.1", int(sys.argv[1]) or None)
print("claimed", claim.port, flush=True)
signal.pause()
"""
HOST = "127.0.0.1"


def test_a_port_that_is_listened_on_is_not_free():
    with socket.create_server((HOST, 0)) as listener:
        assert not is_free(HOST, listener.getsockname()[1])


def test_a_port_that_is_listened_on_at_every_address_is_not_free():
    with socket.create_server(("0.0.0.0", 0)) as listener:
        assert not is_free(HOST, listener.getsockname()[1])


def test_a_port_whose_connections_have_just_been_closed_is_free():
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection((HOST, port))
        accepted, _ = listener.accept()
        accepted.close()  # the server's side closes first, and so keeps the port in TIME_WAIT
        client.close()
    assert is_free(HOST, port)


def test_waiting_for_a_port_that_stays_taken_ends():
    with socket.create_server((HOST, 0)) as listener:
        assert not wait_until_free(HOST, listener.getsockname()[1], 0.1)


def test_a_host_that_does_not_exist_is_named():
    with pytest.raises(UsageError, match="--host: 'no host' is no address"):
        claim_port("no host", None)


def test_claims_are_all_different():
    claims = [claim_port(HOST, None) for _ in range(8)]
    assert len({claim.port for claim in claims}) == 8
    for claim in claims:
        claim.release()


def test_a_taken_port_is_refused():
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"--port: {port} on 127.0.0.1 is taken by another program"):
            claim_port(HOST, port)


def test_a_port_claimed_by_another_process_is_refused_until_that_process_is_gone(tmp_path: Path):
    port = free_port()
    command = [sys.executable, "-c", CLAIMER, str(port)]
    with running(command, cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)}) as other:
        other.wait_for_output("claimed", within=20)
        with pytest.raises(UsageError, match=f"--port: {port} is claimed by another run"):
            claim_port(HOST, port)
    claim_port(HOST, port).release()


@pytest.mark.parametrize("bound, reached", [("0.0.0.0", HOST), ("::", "::1"), (HOST, HOST), ("box", "box")])
def test_a_server_bound_to_every_address_is_reached_by_loopback(bound: str, reached: str):
    assert connect_host(bound) == reached

"""What the window holds, what stays outside it, and what a failed or retried request does to a round."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from specforge.errors import ServerError
from tests.measurement.cells import LIMIT, benchmark, measure, measured_bodies, questions, served, target
from tests.support.scripted import Fault, Pace, Replies, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

EXACT = Replies(tokens=(20, 20))
SPEED = ("output_throughput", "output_throughput_saturated", "request_throughput", "duration", "latency", "ttft")


def paths(server: ScriptedServer) -> list[str]:
    """What was asked of a server, in the order in which it was sent; generations by their token limit."""
    told = []
    for entry in sorted(server.requests, key=lambda entry: entry["started"]):
        if entry["ordinal"] is None:
            told.append(entry["path"])
        else:
            told.append(str(entry["request"]["max_tokens"]))
    return told


def test_throughput_is_what_the_server_s_pace_implies(tmp_path: Path):
    """64 requests, 8 at once, 250 ms each: 8 waves of 250 ms, within 2 %.

    A busy machine makes a round longer, never shorter, for the server as for its client. So no round may pass the
    pace, one of a few must agree with the server's own clock, and one with the pace, unless the server never kept it.
    """
    implied = 64 * 20 / (64 / 8 * 0.250)
    measured, by_server = [], []
    with served(Script(pace=Pace(per_request=0.250), replies=EXACT), tmp_path) as (url, log):
        for _ in range(5):
            seen = len(log())
            metrics = measure(url, questions(64), tmp_path, concurrency=8)[0]["metrics"]
            window = [entry for entry in log()[seen:] if entry["ordinal"] and entry["request"]["max_tokens"] == LIMIT]
            length = max(entry["ended"] for entry in window) - min(entry["started"] for entry in window)
            assert (len(window), metrics["output_tokens"]) == (64, 64 * 20)
            measured.append(metrics["output_throughput"])
            by_server.append(64 * 20 / length)
            if measured[-1] >= 0.98 * implied:
                break
    assert max(measured) <= implied * 1.001
    assert min(abs(mine / its - 1) for mine, its in zip(measured, by_server, strict=True)) < 0.02
    assert metrics["requests_in_flight"] == pytest.approx(8, rel=0.05)
    if max(measured) < 0.98 * implied and max(by_server) < 0.985 * implied:
        pytest.skip(f"this machine is too busy for the server to keep its pace: {max(by_server):.0f} of {implied:.0f}")
    assert max(measured) == pytest.approx(implied, rel=0.02)


def test_warm_up_tokenizing_and_flushes_stay_outside_the_window(tmp_path: Path):
    """The warm-up's requests take 20 times as long as the measured ones."""
    slow = Fault("slow", seconds=0.4, containing="Question 10")
    with ScriptedServer(Script(faults=(slow,), replies=EXACT)) as server:
        began = time.perf_counter()
        record, _ = measure(server.base_url, questions(8), tmp_path)
        took = time.perf_counter() - began
    assert took - record["metrics"]["duration"] >= 2 * 0.4
    assert [entry["fault"] for entry in server.generations].count("slow") == 4
    assert sum(record["requests"]["output_tokens"]) == record["metrics"]["output_tokens"] == 160


def test_a_first_cell_warms_up_twice_a_later_one_once_and_each_round_begins_with_a_flush(tmp_path: Path):
    with ScriptedServer() as server:
        probed = target(server.base_url)
        before = len(server.requests)
        measure(probed, questions(3), tmp_path, rounds=2)
        measure(probed, questions(3), tmp_path, rounds=1)
        probed.close()
        told = [what for what in paths(server)[before:] if what not in ("/v1/tokenize", "/ready")]
    flush, warm, round_ = ["/flush_cache"], ["256"] * 2, [str(LIMIT)] * 3
    assert told == [*warm, *warm, *flush, *round_, *flush, *round_, *warm, *flush, *round_]


def test_the_warm_up_asks_other_prompts_and_fewer_tokens(tmp_path: Path):
    with ScriptedServer() as server:
        measure(server.base_url, benchmark(questions(3), questions(2, start=50)), tmp_path, max_new_tokens=100)
        warm = [
            entry["request"]["messages"][0]["content"]
            for entry in server.generations
            if entry["request"]["messages"][0]["content"].startswith("Question 5")
        ]
        limits = {entry["request"]["max_tokens"] for entry in server.generations}
    assert sorted(warm) == ["Question 50 is asked."] * 2 + ["Question 51 is asked."] * 2
    assert limits == {1, 100}


def test_a_refused_flush_is_asked_again(tmp_path: Path):
    with ScriptedServer(Script(wire=Wire(flush_refusals=3))) as server:
        record, _ = measure(server.base_url, questions(2), tmp_path)
        flushes = [entry["status"] for entry in server.requests if entry["path"] == "/flush_cache"]
    assert record["status"] == "ok"
    assert flushes == [400, 400, 400, 200, 200]


def test_a_flush_that_is_refused_for_good_fails_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with ScriptedServer() as server:
        probed = target(server.base_url)

        def refused() -> bool:
            raise ServerError("the server refused to flush its cache for 30 s")

        monkeypatch.setattr(probed.control, "flush_cache", refused)
        record, rows = measure(probed, questions(2), tmp_path)
        probed.close()
    assert (record["status"], rows) == ("failed", [])
    assert "refused to flush" in str(record["reason"])
    assert record["metrics"]["output_throughput"] is None


def test_a_server_without_a_flush_is_measured_and_the_record_says_so(tmp_path: Path):
    with ScriptedServer(Script(wire=Wire(missing=("/flush_cache",)))) as server:
        record, _ = measure(server.base_url, questions(8), tmp_path)
    assert record["status"] == "ok"
    assert [w for w in record["environment"]["warnings"] if "no /flush_cache" in w]


def spoilt_once(**fault: Any) -> Script:
    """One measured request meets a fault, once."""
    return Script(faults=(Fault(containing="Question 3 ", times=1, **fault),), replies=EXACT)


def test_a_round_with_a_retried_request_is_measured_again(tmp_path: Path):
    with ScriptedServer(spoilt_once(what="status", status=503)) as server:
        record, rows = measure(server.base_url, questions(6), tmp_path)
        asked = len(measured_bodies(server.generations))
    metrics = record["metrics"]
    assert asked == 6 + 1 + 6
    assert (metrics["requests"], metrics["output_tokens"]) == (6, 120), "a request counts once, whatever its retries"
    assert (metrics["rounds_repeated"], metrics["retried"], metrics["failed"]) == (1, 0, 0)
    assert metrics["output_throughput"] is not None
    assert record["requests"]["row_id"] == [f"row-{at}" for at in range(6)]
    superseded = [row for row in rows if row.get("superseded")]
    assert (len(rows), len(superseded)) == (12, 6)
    assert [row["retries"] for row in superseded if row["row_id"] == "row-3"] == [1]


def test_a_round_that_is_spoilt_twice_says_nothing_about_speed_but_all_else(tmp_path: Path):
    # Of all generations, 1 is the probe, 2 to 5 warm up, 6 to 12 are the first try, and 13 to 18 the second.
    faults = (Fault("status", status=503, containing="Question 3 ", times=1), Fault("drop", requests=(16,)))
    script = Script(faults=faults, replies=EXACT, speculation=Speculation())
    with ScriptedServer(script) as server:
        record, _ = measure(server.base_url, questions(6), tmp_path)
        struck = [entry["fault"] for entry in server.generations if entry["fault"]]
    metrics = record["metrics"]
    assert struck == ["status", "drop"]
    assert [metrics[name] for name in SPEED] == [None] * len(SPEED)
    assert metrics["reasons"]["output_throughput"].startswith("a request failed or was retried in every round")
    assert (metrics["output_tokens"], metrics["requests"], metrics["retried"]) == (120, 6, 1)
    assert metrics["acceptance_length"] > 1
    assert [round_["usable"] for round_ in metrics["rounds"]] == [False]
    assert record["status"] == "ok"


def test_only_the_rounds_without_trouble_count_for_speed(tmp_path: Path):
    """Round 0 is spoilt twice over by a prompt that always fails there; rounds 1 and 2 are clean."""
    script = Script(faults=(Fault("status", status=400, containing="Question 3 ", times=2),), replies=EXACT)
    with ScriptedServer(script) as server:
        record, _ = measure(server.base_url, questions(6), tmp_path, rounds=3)
    metrics = record["metrics"]
    assert [round_["usable"] for round_ in metrics["rounds"]] == [False, True, True]
    clean = metrics["rounds"][1:]
    assert metrics["duration"] == sum(round_["duration"] for round_ in clean)
    assert metrics["output_throughput"] == 240 / metrics["duration"]
    assert metrics["rounds"][0]["output_throughput"] is None
    assert metrics["failed"] == 1
    assert "status 400" in metrics["first_error"]


def test_retries_are_bounded_and_a_failed_prompt_is_kept_with_its_error(tmp_path: Path):
    fault = Fault("malformed", containing="Question 1 ")
    with ScriptedServer(Script(faults=(fault,), replies=EXACT)) as server:
        record, rows = measure(server.base_url, questions(2), tmp_path)
        tries = [entry for entry in server.generations if entry["fault"]]
    assert len(tries) == 2 * 3, "three attempts, in each of the two tries of the round"
    assert record["requests"]["status"] == ["ok", "failed"]
    assert record["requests"]["latency"][1] is None
    assert record["metrics"]["failed"] == 1
    assert rows[-1]["error"].startswith("row-1: malformed answer")


def test_a_request_that_takes_too_long_is_aborted_on_the_server(tmp_path: Path):
    fault = Fault("slow", seconds=60, containing="Question 1 ")
    with ScriptedServer(Script(faults=(fault,))) as server:
        probed = target(server.base_url, request_timeout=0.3)
        record, _ = measure(probed, questions(2), tmp_path)
        probed.close()
        stopped = {entry["request"]["rid"] for entry in server.requests if entry["path"] == "/abort_request"}
        hung = {body["rid"] for body in measured_bodies(server.generations) if "Question 1 " in str(body)}
    assert "--request-timeout" in record["metrics"]["first_error"]
    assert stopped == hung
    assert len(stopped) == 2


def test_latencies_are_the_client_s_and_first_tokens_the_server_s_unless_streamed(tmp_path: Path):
    pace = Pace(per_request=0.05, per_step=0.005)
    with ScriptedServer(Script(pace=pace, replies=EXACT)) as server:
        whole, _ = measure(server.base_url, questions(3), tmp_path)
        probed = target(server.base_url, stream=True)
        streamed, _ = measure(probed, questions(3), tmp_path)
        probed.close()
    told, seen = whole["metrics"], streamed["metrics"]
    assert (told["ttft"]["source"], seen["ttft"]["source"]) == ("server", "stream")
    assert told["ttft"]["p50"] == pytest.approx(0.05)
    assert told["tpot"]["p50"] == pytest.approx(0.005)
    assert told["itl"] is None
    assert 0.05 <= seen["ttft"]["p50"] < seen["latency"]["p50"]
    assert seen["itl"]["mean"] >= 0.004
    assert seen["output_tokens"] == told["output_tokens"] == 60


def test_a_time_that_nobody_tells_is_null_and_the_record_says_why(tmp_path: Path):
    with ScriptedServer(Script(wire=Wire(metrics=False))) as server:
        metrics = measure(server.base_url, questions(3), tmp_path)[0]["metrics"]
    assert (metrics["ttft"], metrics["tpot"]) == (None, None)
    assert metrics["reasons"]["ttft"] == "not reported by the server, and not streamed"


def test_fewer_than_four_prompts_a_slot_are_warned_of(tmp_path: Path):
    with ScriptedServer() as server:
        few, _ = measure(server.base_url, questions(7), tmp_path)
        enough, _ = measure(server.base_url, questions(8), tmp_path)
    assert [w for w in few["environment"]["warnings"] if "7 prompts for 2 slots" in w]
    assert enough["environment"]["warnings"] == []

"""Rounds against a scripted server: warm-up, flushes, retries, limits, and servers that go away."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from specforge.client.endpoint import Endpoint
from specforge.errors import ServerError
from specforge.load.blocking import run_blocking
from specforge.load.prepare import Limits
from specforge.load.schedule import OpenLoop
from specforge.load.watch import Watch
from tests.load.measuring import Measuring, prompt, text_of
from tests.support.processes import wait_until
from tests.support.scripted import Fault, Pace, Replies, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

PROMPTS = [prompt(number) for number in range(6)]
WARMUP = [prompt(number) for number in range(900, 904)]
SPECULATING = Script(speculation=Speculation())


def happenings(server: ScriptedServer) -> list[str]:
    """What the server was asked, in order, flushes and generations alone: ``flush``, or a prompt's number."""
    names = []
    for entry in server.requests:
        if entry["path"] == "/flush_cache" and entry["status"] == 200:
            names.append("flush")
        elif entry["ordinal"] is not None:
            names.append(text_of(entry).rpartition(" ")[2])
    return names


def test_every_prompt_of_every_round_lands_once_with_the_servers_own_counts() -> None:
    with ScriptedServer(SPECULATING) as server:
        kept = Measuring(server.base_url).run(PROMPTS, rounds=2)
        told = {(text_of(entry), entry["request"]["seed"]): entry["response"] for entry in server.generations}
    landed = [(outcome.prepared.prompt.row_id, outcome.round_index) for outcome, _ in kept.outcomes]
    assert sorted(landed) == sorted((p.row_id, r) for p in PROMPTS for r in (0, 1))
    for outcome, _ in kept.outcomes:
        (reply,) = outcome.replies
        response = told[outcome.prepared.prompt.messages[0]["content"], 7 + outcome.round_index]
        assert f'"completion_tokens":{reply.completion_tokens}' in response.replace(" ", "")
        assert reply.spec is not None
        assert f'"spec_verify_ct":{reply.spec.verify_steps}' in response.replace(" ", "")
        assert kept.rounds[outcome.round_index].started_at <= reply.sent_at < reply.ended_at


def test_the_warm_up_has_prompts_of_its_own_and_ends_before_a_flush_and_the_first_round() -> None:
    with ScriptedServer(SPECULATING) as server:
        kept = Measuring(server.base_url).run(PROMPTS, warmup=WARMUP, concurrency=3, rounds=2)
        asked = happenings(server)
    first, second = (at for at, name in enumerate(asked) if name == "flush")
    measured = [f"{number:03d}" for number in range(6)]
    assert sorted(asked[:first]) == ["900", "901", "902"]
    assert sorted(asked[first + 1 : second]) == measured
    assert sorted(asked[second + 1 :]) == measured
    assert not {outcome.prepared.prompt.row_id for outcome, _ in kept.outcomes} & {p.row_id for p in WARMUP}


def test_a_warm_up_answer_is_at_most_256_tokens_long() -> None:
    with ScriptedServer(SPECULATING) as server:
        Measuring(server.base_url).run(PROMPTS[:1], warmup=WARMUP[:1], concurrency=1)
        limits = [entry["request"]["max_tokens"] for entry in server.generations]
    assert limits == [256, 2048]


def test_a_flush_that_is_refused_at_first_is_tried_again() -> None:
    with ScriptedServer(Script(wire=Wire(flush_refusals=2))) as server:
        kept = Measuring(server.base_url).run(PROMPTS)
        statuses = [entry["status"] for entry in server.requests if entry["path"] == "/flush_cache"]
    assert statuses == [400, 400, 200]
    assert kept.rounds[0].usable


def test_no_more_requests_are_in_flight_than_there_are_slots() -> None:
    with ScriptedServer(Script(pace=Pace(per_request=0.05))) as server:
        Measuring(server.base_url).run([prompt(number) for number in range(12)], concurrency=4)
        assert server.max_in_flight == 4


def test_an_open_loop_lands_every_prompt() -> None:
    with ScriptedServer(SPECULATING) as server:
        kept = Measuring(server.base_url).run(PROMPTS, schedule=OpenLoop(200.0, seed=1))
    assert sorted(outcome.prepared.prompt.row_id for outcome, _ in kept.outcomes) == [p.row_id for p in PROMPTS]


def test_a_later_turn_carries_the_earlier_turns_and_the_models_own_answer() -> None:
    asked = prompt(1, "and the second question", "and the third")
    with ScriptedServer(SPECULATING) as server:
        kept = Measuring(server.base_url).run([asked])
        messages = [entry["request"]["messages"] for entry in server.generations]
    (outcome,) = kept.of("p1")
    answers = [reply.text for reply in outcome.replies]
    assert [len(turn) for turn in messages] == [1, 3, 5]
    assert messages[2] == [
        asked.messages[0],
        {"role": "assistant", "content": answers[0]},
        {"role": "user", "content": "and the second question"},
        {"role": "assistant", "content": answers[1]},
        {"role": "user", "content": "and the third"},
    ]


def test_a_streamed_later_turn_is_tokenized_with_the_answer_in_it() -> None:
    with ScriptedServer(SPECULATING) as server:
        kept = Measuring(server.base_url, stream=True).run([prompt(1, "and the second question")])
        lengths = [len(entry["request"]["input_ids"]) for entry in server.generations]
    (outcome,) = kept.of("p1")
    first, second = outcome.replies
    assert lengths == [first.prompt_tokens, second.prompt_tokens]
    assert second.prompt_tokens > first.prompt_tokens + first.completion_tokens
    assert all(reply.first_token_at is not None for reply in outcome.replies)


def test_a_conversation_ends_at_the_turn_that_fails_and_keeps_the_earlier_ones() -> None:
    refused = Fault("status", status=422, containing="second question")
    with ScriptedServer(Script(faults=(refused,))) as server:
        kept = Measuring(server.base_url).run([prompt(1, "the second question", "the third")])
    outcome = kept.of("p1")[-1]
    assert (outcome.status, len(outcome.replies)) == ("failed", 1)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", status=503, containing="002", times=1),
        Fault("malformed", containing="002", times=1),
        Fault("drop", containing="002", times=1),
        Fault("refuse", containing="002", times=1),
    ],
    ids=lambda fault: str(fault.what),
)
def test_a_retried_request_is_counted_and_its_round_measured_again(fault: Fault) -> None:
    with ScriptedServer(Script(faults=(fault,))) as server:
        kept = Measuring(server.base_url).run(PROMPTS)
    spoilt, again = kept.of("p2")
    assert (spoilt.status, spoilt.retries) == ("ok", 1)
    assert (again.status, again.retries) == ("ok", 0)
    assert kept.again == [0]
    assert {attempt for _, attempt in kept.outcomes} == {0, 1}
    assert kept.rounds[0].usable


def test_a_request_that_keeps_failing_is_given_up_after_three_attempts() -> None:
    with ScriptedServer(Script(faults=(Fault("status", status=500, containing="002"),))) as server:
        kept = Measuring(server.base_url).run(PROMPTS)
        attempts = [entry for entry in server.generations if "002" in text_of(entry)]
    first, second = kept.of("p2")
    assert [first.status, second.status] == ["failed", "failed"]
    assert first.retries == 2
    assert len(attempts) == 6  # three in the round, three when it is measured again, and no third round
    assert first.error == "p2: status 500: " + '{"error":{"message":"scripted 500"}}'
    assert not kept.rounds[0].usable
    assert all(outcome.status == "ok" for outcome, _ in kept.outcomes if outcome.prepared.prompt.row_id != "p2")


def test_a_request_that_is_refused_as_wrong_is_not_tried_again() -> None:
    with ScriptedServer(Script(faults=(Fault("status", status=422, containing="002"),))) as server:
        kept = Measuring(server.base_url).run(PROMPTS)
        attempts = [entry for entry in server.generations if "002" in text_of(entry)]
    assert [outcome.retries for outcome in kept.of("p2")] == [0, 0]
    assert len(attempts) == 2


def test_rounds_end_when_nothing_at_all_is_answered() -> None:
    with ScriptedServer(Script(faults=(Fault("status", status=422),))) as server:
        kept = Measuring(server.base_url).run(PROMPTS, rounds=5)
        assert len(server.generations) == 2 * len(PROMPTS)
    assert not kept.rounds[0].usable


def test_a_request_over_its_time_limit_fails_and_is_aborted_on_the_server() -> None:
    with ScriptedServer(Script(faults=(Fault("hang", containing="002"),))) as server:
        kept = Measuring(server.base_url, timeout=0.5).run(PROMPTS)
        aborted = [entry["request"]["rid"] for entry in server.requests if entry["path"] == "/abort_request"]
    outcome = kept.of("p2")[0]
    assert outcome.error == "p2: no answer within 0.5 s (--request-timeout)"
    assert outcome.retries == 0
    assert len(set(aborted)) == 2  # once in each attempt at the round


def test_an_answer_is_clamped_to_what_the_context_holds() -> None:
    with ScriptedServer() as server:
        measuring = Measuring(server.base_url)
        (prepared,) = measuring.prepared(PROMPTS[:1])
        assert prepared.prompt_tokens is not None
        kept = measuring.run(PROMPTS[:1], limits=Limits(500, max_model_len=200, largest_tree=16))
        asked = server.generations[-1]["request"]["max_tokens"]
    assert asked == 200 - prepared.prompt_tokens - 16 - 8
    assert kept.of("p0")[0].clamped


def test_a_prompt_that_does_not_fit_is_too_long_and_never_sent() -> None:
    with ScriptedServer() as server:
        kept = Measuring(server.base_url).run(PROMPTS[:1], limits=Limits(500, max_model_len=10))
        assert server.generations == []
    assert [outcome.status for outcome in kept.of("p0")] == ["too_long"] * len(kept.of("p0"))


def test_a_server_that_refuses_a_prompt_as_too_long_is_believed() -> None:
    long = Script(wire=Wire(context_length=64))
    with ScriptedServer(long) as server:
        kept = Measuring(server.base_url).run(PROMPTS[:1])
    assert {outcome.status for outcome in kept.of("p0")} == {"too_long"}


def test_a_server_that_dies_ends_the_load_and_what_landed_is_kept() -> None:
    dying = Script(replies=Replies(), faults=(Fault("exit", requests=(4,)),))
    with ScriptedServer(dying) as server:
        measuring = Measuring(server.base_url)
        with pytest.raises(ServerError, match=rf"the server at {server.base_url} is gone"):
            measuring.run(PROMPTS, concurrency=1)
    assert [outcome.prepared.prompt.row_id for outcome, _ in measuring.sink.outcomes] == ["p0", "p1", "p2"]


def test_a_dead_process_ends_the_load_at_once_and_its_requests_are_aborted() -> None:
    def check_alive() -> None:
        if server.max_in_flight >= 3:  # all of them are running
            raise ServerError("the process ended with 9")

    def asked(entry: dict[str, Any]) -> bool:
        return bool(entry["path"] == "/abort_request")

    with ScriptedServer(Script(faults=(Fault("hang"),))) as server:
        measuring = Measuring(server.base_url, check_alive=check_alive)
        with pytest.raises(ServerError, match="the process ended with 9"):
            measuring.run(PROMPTS, concurrency=3)
        # A request is in the log once it has ended, which is after its answer was read.
        wait_until(lambda: len(list(filter(asked, server.requests))) == 3, within=10, what="three aborts in the log")


def test_a_server_that_stays_silent_counts_as_hung() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never says a word
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        watch = Watch(Endpoint(url), interval=0.05, hang_after=0.3)
        with pytest.raises(ServerError, match=r"hangs: /ready has not answered for 0\.3 s"):
            run_blocking(lambda: watch.during(forever()))

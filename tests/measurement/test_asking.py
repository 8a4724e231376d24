"""What is asked: the same for every configuration, through the server's template, with every parameter stated."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from specforge.client.sampling import Sampling
from specforge.datasets import ScoringOptions, make_scorer
from specforge.errors import UsageError
from specforge.scoring.score import Scorer
from tests.measurement.cells import LIMIT, measure, measured_bodies, questions, target
from tests.support.scripted import Answer, Fault, Replies, Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

HARNESS_FIELDS = {"model", "messages", "rid", "return_meta_info", "return_token_ids"}
GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


def asked(folder: Path, sampling: Sampling, **plan: Any) -> list[dict[str, Any]]:
    """The measured bodies of a cell of two prompts, without the harness's own fields."""
    with ScriptedServer() as server:
        measure(server.base_url, questions(2), folder, sampling=sampling, **plan)
        bodies = measured_bodies(server.generations)
    return [{name: value for name, value in body.items() if name not in HARNESS_FIELDS} for body in bodies]


def test_every_request_states_greedy_sampling_and_nothing_else(tmp_path: Path):
    bodies = asked(tmp_path, Sampling.greedy(7), rounds=2)
    expected = [{**GREEDY, "seed": 7 + round_, "max_tokens": LIMIT} for round_ in (0, 0, 1, 1)]
    assert bodies == expected


def test_sampling_can_be_left_to_the_model(tmp_path: Path):
    assert asked(tmp_path, Sampling(seed=7)) == [{"seed": 7, "max_tokens": LIMIT}] * 2


def test_what_the_user_adds_is_in_every_request_and_in_the_record(tmp_path: Path):
    sampling = Sampling(
        Sampling.greedy(top_p=0.5).values,
        extra_body={"ignore_eos": True, "temperature": 0.7},
        template_kwargs={"enable_thinking": False},
    )
    with ScriptedServer() as server:
        record, _ = measure(server.base_url, questions(1), tmp_path, sampling=sampling)
        (body,) = measured_bodies(server.generations)
        (tokenized, *_) = [entry["request"] for entry in server.requests if entry["path"] == "/v1/tokenize"][1:]
    assert (body["top_p"], body["ignore_eos"], body["temperature"]) == (0.5, True, 0.7)
    assert body["chat_template_kwargs"] == tokenized["chat_template_kwargs"] == {"enable_thinking": False}
    assert record["benchmark"]["sampling"] == {
        "values": {**GREEDY, "top_p": 0.5},
        "seed": 42,
        "extra_body": {"ignore_eos": True, "temperature": 0.7},
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_a_second_turn_follows_the_model_s_own_answer_without_its_reasoning(tmp_path: Path):
    said = "<think>They want a number, let me see.</think>\n\nThe first answer."
    script = Script(replies=Replies(answers=(Answer("And then?", "The second answer."), Answer("asked", said))))
    with ScriptedServer(script) as server:
        record, rows = measure(server.base_url, questions(1, followups=("And then?",)), tmp_path)
        first, second = measured_bodies(server.generations)
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][0] == first["messages"][0]
    assert second["messages"][1]["content"] == "The first answer."
    assert second["messages"][2]["content"] == "And then?"
    assert [turn["text"] for turn in rows[0]["turns"]] == [said, "The second answer."]
    assert len(record["requests"]["row_id"]) == 1, "the conversation is the unit"


def test_reasoning_that_a_parser_split_off_stays_out_of_the_second_turn_too(tmp_path: Path):
    first = Answer("asked", text=" The first answer.", reasoning="Let me see.")
    script = Script(replies=Replies(answers=(Answer("And then?", "Done."), first)))
    with ScriptedServer(script) as server:
        _, rows = measure(server.base_url, questions(1, followups=("And then?",)), tmp_path)
        second = measured_bodies(server.generations)[1]
    assert second["messages"][1]["content"] == " The first answer."
    assert rows[0]["turns"][0]["reasoning"] == "Let me see."


def test_every_configuration_asks_the_same_prompts_with_the_same_limits(tmp_path: Path):
    """What is fixed must not depend on what the server drafts with, nor on the batch size."""
    bodies, records = [], []
    for speculation, concurrency in ((None, 1), (Speculation(), 4)):
        wire = Wire(context_length=200)
        script = Script(speculation=speculation, wire=wire, replies=Replies(tokens=(150, 150)))
        with ScriptedServer(script) as server:
            record, _ = measure(server.base_url, questions(6), tmp_path, concurrency=concurrency, largest_tree=16)
            sent = [
                (entry["request"]["messages"], entry["request"]["max_tokens"])
                for entry in server.generations
                if entry["request"]["max_tokens"] > 1 and "Question 10" not in str(entry["request"]["messages"])
            ]
        bodies.append(sorted(sent, key=str))
        records.append(record)
    assert bodies[0] == bodies[1]
    assert records[0]["benchmark"] == records[1]["benchmark"]
    assert [len(record["benchmark"]["hashes"]["token_ids"]) for record in records] == [6, 6]


def test_a_request_is_clamped_to_the_context_less_the_largest_tree_and_the_clamp_is_counted(tmp_path: Path):
    with ScriptedServer(Script(wire=Wire(context_length=100))) as server:
        record, rows = measure(server.base_url, questions(3), tmp_path, largest_tree=16)
        tokenized = {
            entry["request"]["messages"][0]["content"]: len(entry["response"])
            for entry in server.requests
            if entry["path"] == "/v1/tokenize"
        }
        lengths = {row["messages"][0]["content"]: row["turns"][0]["prompt_tokens"] for row in rows}
        limits = {
            entry["request"]["messages"][0]["content"]: entry["request"]["max_tokens"]
            for entry in server.generations
            if entry["request"]["messages"][0]["content"] in lengths
        }
    assert set(lengths) < set(tokenized)
    assert limits == {content: 100 - length - 16 - 8 for content, length in lengths.items()}
    assert record["metrics"]["clamped"] == 3
    assert [row["clamped"] for row in rows] == [True] * 3


def test_a_second_turn_is_clamped_by_the_conversation_so_far(tmp_path: Path):
    script = Script(wire=Wire(context_length=120), replies=Replies(tokens=(40, 40)))
    with ScriptedServer(script) as server:
        record, rows = measure(server.base_url, questions(1, followups=("And then?",)), tmp_path)
        second = [entry["request"] for entry in server.generations if len(entry["request"]["messages"]) == 3][-1]
    assert record["requests"]["status"] == ["ok"]
    assert second["max_tokens"] + rows[0]["turns"][1]["prompt_tokens"] <= 120 - 8


def test_a_prompt_that_does_not_fit_is_too_long_and_spoils_no_round(tmp_path: Path):
    message = {"role": "user", "content": "word " * 200}
    long = dataclasses.replace(questions(1)[0], row_id="long", index=9, messages=(message,))
    with ScriptedServer(Script(wire=Wire(context_length=150))) as server:
        record, rows = measure(server.base_url, (*questions(3), long), tmp_path)
    assert record["requests"]["status"] == ["ok", "ok", "ok", "too_long"]
    assert (record["metrics"]["too_long"], record["metrics"]["failed"]) == (1, 0)
    assert record["metrics"]["output_throughput"] is not None
    assert "leaves no room for an answer in a context of 150" in next(r["error"] for r in rows if r["row_id"] == "long")


def scorer() -> Scorer:
    """GSM8K's."""
    made = make_scorer("gsm8k", ScoringOptions())
    assert made is not None
    return made


def test_wrong_answers_are_counted_by_what_was_wrong_with_them(tmp_path: Path):
    answers = (
        Answer("Question 0 ", r"It is \boxed{7}."),
        Answer("Question 1 ", r"It is \boxed{8}."),
        Answer("Question 2 ", "I would rather not say."),
        Answer("Question 3 ", "and so on " * 200),
    )
    script = Script(replies=Replies(answers=answers), faults=(Fault("status", status=400, containing="Question 4 "),))
    prompts = questions(5, reference="7")
    with ScriptedServer(script) as server:
        record, rows = measure(server.base_url, prompts, tmp_path, scorer=scorer())
    metrics = record["metrics"]
    assert metrics["accuracy"] == 1 / 5
    counts = metrics["accuracy_counts"]
    assert counts == {"correct": 1, "total": 5, "unparsed": 1, "truncated": 1, "failed": 1, "too_long": 0}
    assert record["requests"]["correct"] == [True, False, False, False, False]
    assert record["requests"]["truncated"] == [False, False, False, True, False]
    assert {row["row_id"]: row["score"]["correct"] for row in rows if not row.get("superseded")}["row-0"] is True


def test_loops_are_counted_and_flagged(tmp_path: Path):
    looping = Answer("Question 0 ", "the same thing again and " * 60)
    plain = Answer("asked", "An answer of some words, none of them said twice over.")
    with ScriptedServer(Script(replies=Replies(answers=(looping, plain)))) as server:
        record, _ = measure(server.base_url, questions(3), tmp_path)
    assert record["requests"]["degenerate"] == [True, False, False]
    assert record["metrics"]["degenerate_share"] == 1 / 3


@pytest.mark.parametrize("parser", [True, False], ids=["parser", "no parser"])
def test_an_answer_cut_while_still_thinking_is_counted(tmp_path: Path, parser: bool):
    thought = " ".join(f"step{at}" for at in range(2 * LIMIT))
    cut = (
        Answer("asked", "Done.", reasoning=thought) if parser else Answer("asked", f"<think> {thought} </think> Done.")
    )
    with ScriptedServer(Script(replies=Replies(answers=(cut,)))) as server:
        record, _ = measure(server.base_url, questions(2, reference="7"), tmp_path, scorer=scorer())
    assert record["metrics"]["truncated_thinking"] == record["metrics"]["truncated"] == 2
    assert record["metrics"]["accuracy"] == 0.0


def test_without_a_scorer_accuracy_is_null_and_the_reason_is_said(tmp_path: Path):
    with ScriptedServer() as server:
        record, _ = measure(server.base_url, questions(2), tmp_path, unscored="no judge was named")
    assert record["metrics"]["accuracy"] is None
    assert record["metrics"]["reasons"]["accuracy"] == "no judge was named"


def test_a_text_model_skips_prompts_with_an_image(tmp_path: Path):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = {"role": "user", "content": [image]}
    (text,) = questions(1)
    pictured = dataclasses.replace(text, row_id="pictured", index=1, messages=(message,), has_image=True)
    with ScriptedServer() as server:
        skipped, rows = measure(server.base_url, (pictured,), tmp_path)
        mixed, _ = measure(server.base_url, (text, pictured), tmp_path)
    assert (skipped["status"], skipped["reason"]) == ("skipped", "the server's model takes no images")
    assert mixed["requests"]["status"] == ["ok", "skipped"]
    assert "AAAA" not in str(rows)


def test_an_older_server_is_asked_through_tokenize_and_generate(tmp_path: Path):
    script = Script(wire=Wire(meta_info=False, token_ids=False), speculation=Speculation())
    with ScriptedServer(script) as server:
        record, rows = measure(server.base_url, questions(3, followups=("And then?",)), tmp_path)
        generated = [entry["request"] for entry in server.generations if entry["path"] == "/generate"]
        ids = [entry["request"]["messages"] for entry in server.requests if entry["path"] == "/v1/tokenize"]
    measured = [body for body in generated if body["sampling_params"]["max_new_tokens"] == LIMIT]
    assert record["environment"]["route"] == "/generate"
    assert len(measured) == 6
    assert measured[0]["sampling_params"] == {**GREEDY, "sampling_seed": 42, "max_new_tokens": LIMIT}
    assert record["metrics"]["acceptance_length"] > 1
    assert all(turn["output_ids"] for row in rows for turn in row["turns"])
    assert [len(messages) for messages in ids].count(3) >= 3, "second turns are rendered by the server's template"


def test_a_server_that_refuses_unknown_fields_is_asked_without_them(tmp_path: Path):
    wire = Wire(refuses=("return_meta_info", "return_token_ids"), missing=("/generate", "/v1/tokenize"))
    with ScriptedServer(Script(wire=wire)) as server:
        record, _ = measure(server.base_url, questions(8), tmp_path)
    assert record["metrics"]["output_tokens"] > 0
    assert record["metrics"]["acceptance_length"] is None
    warnings = " ".join(record["environment"]["warnings"])
    assert "no meta_info" in warnings
    assert "no /v1/tokenize" in warnings


def test_a_server_that_can_neither_tokenize_nor_report_needs_the_model_s_template():
    wire = Wire(meta_info=False, token_ids=False, missing=("/v1/tokenize",))
    with ScriptedServer(Script(wire=wire)) as server:
        if importlib.util.find_spec("transformers") is None:
            expected = r"/v1/tokenize.*pip install 'specforge\[template\]'"
        else:
            expected = "--model-path: no tokenizer could be loaded from 'scripted/model'"
        with pytest.raises(UsageError, match=expected):
            target(server.base_url)

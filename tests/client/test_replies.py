"""Answers of every version and route, whole and streamed, as what they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from specforge.client.reply import MalformedReply, Reply, SpecCounts, parse_chat, parse_generate, spec_counts
from specforge.client.stream import EventSplitter, read_chat_stream, read_generate_stream, tokens_so_far

TODAY = {
    "spec_verify_ct": 4,
    "spec_num_correct_drafts": 6,
    "spec_num_proposed_drafts": 12,
    "spec_correct_drafts_histogram": [1, 1, 1, 1],
}
OLDER = {
    "spec_verify_ct": 4,
    "spec_accept_token_num": 6,
    "spec_draft_token_num": 12,
    "spec_accept_histogram": [1, 1, 1, 1],
}
BETWEEN = {"spec_verify_ct": 4, "spec_accepted_drafts": 6, "spec_proposed_drafts": 12}
META = {
    "prompt_tokens": 11,
    "completion_tokens": 10,
    "cached_tokens": 3,
    "finish_reason": {"type": "length", "length": 10},
    "e2e_latency": 0.5,
    "first_token_latency": 0.1,
}


def chat(meta: dict[str, Any] | None, **choice: Any) -> dict[str, Any]:
    whole = {
        "message": {"role": "assistant", "content": "four", "reasoning_content": None},
        "finish_reason": "stop",
        **choice,
    }
    if meta is not None:
        whole["meta_info"] = meta
    return {"choices": [whole], "usage": {"prompt_tokens": 11, "completion_tokens": 10}}


@pytest.mark.parametrize(
    "fields, counts",
    [
        (TODAY, SpecCounts(4, 6, 12, [1, 1, 1, 1])),
        (OLDER, SpecCounts(4, 6, 12, [1, 1, 1, 1])),
        (BETWEEN, SpecCounts(4, 6, 12, None)),
        ({"spec_verify_ct": 4, "spec_correct_drafts_histogram": [2, 0, 2]}, SpecCounts(4, 4, None, [2, 0, 2])),
        ({"spec_verify_ct": 4}, SpecCounts(4)),
    ],
    ids=["today", "older", "between", "histogram alone", "steps alone"],
)
def test_speculative_fields_are_read_under_every_version_s_names(fields: dict[str, Any], counts: SpecCounts):
    assert spec_counts(fields) == counts
    assert parse_chat(chat({**META, **fields})).spec == counts
    assert parse_generate({"text": "four", "output_ids": [1], "meta_info": {**META, **fields}}).spec == counts


@pytest.mark.parametrize(
    "fields", [{}, {"spec_verify_ct": 0}, {"spec_verify_ct": None}, {"spec_num_correct_drafts": 0}]
)
def test_a_request_that_was_never_verified_has_no_counts(fields: dict[str, Any]):
    assert spec_counts(fields) is None


def test_a_chat_completion_says_all_that_is_known_of_a_request():
    reply = parse_chat(chat(META, response_token_ids=[7, 8], prompt_token_ids=[1]))
    assert reply == Reply(
        text="four",
        output_ids=[7, 8],
        prompt_ids=[1],
        finish_reason="stop",
        completion_tokens=10,
        prompt_tokens=11,
        cached_tokens=3,
        server_ttft=0.1,
        server_latency=0.5,
    )


def test_a_chat_completion_of_a_version_without_meta_info_has_its_counts_from_usage():
    reply = parse_chat(chat(None))
    assert (reply.completion_tokens, reply.prompt_tokens, reply.spec, reply.cached_tokens) == (10, 11, None, None)


def test_content_that_a_reasoning_parser_left_empty_is_an_empty_text():
    reply = parse_chat(chat(META, message={"content": None, "reasoning_content": "hm"}))
    assert (reply.text, reply.reasoning) == ("", "hm")


@pytest.mark.parametrize(
    "body",
    [None, [], {}, "text", {"choices": []}, {"choices": [{}]}, {"choices": [{"message": {}}]}, {"error": "no"}],
    ids=repr,
)
def test_what_is_no_answer_is_malformed(body: Any):
    with pytest.raises(MalformedReply):
        parse_chat(body)
    with pytest.raises(MalformedReply):
        parse_generate(body)


class Received:
    """A response body that arrives in the pieces given."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def server_sent(*data: Any) -> bytes:
    return b"".join(b"data: " + (json.dumps(one).encode() if one is not None else b"[DONE]") + b"\n\n" for one in data)


def cut(content: bytes, size: int) -> Received:
    return Received(content[at : at + size] for at in range(0, len(content), size))


GENERATION = [
    {"text": "a", "meta_info": {**META, "finish_reason": None, "completion_tokens": 1}},
    {"text": "abc", "meta_info": {**META, "finish_reason": None, "completion_tokens": 4}},
    {"text": "abcd", "output_ids": [1, 2], "meta_info": {**META, **TODAY}},
]


@pytest.mark.parametrize("size", [1, 7, 64, 10**6])
def test_events_come_whole_however_the_bytes_arrive(size: int):
    content = b": a comment\n" + server_sent(*GENERATION, None)
    splitter = EventSplitter()
    found = [data for at in range(0, len(content), size) for data in splitter.feed(content[at : at + size])]
    assert list(map(json.loads, found)) == GENERATION


def test_a_streamed_generation_knows_when_its_tokens_came():
    clock = iter([1.0, 2.0, 4.0, 4.5])
    stream = Received(server_sent(one) for one in (*GENERATION, None))
    reply = asyncio.run(read_generate_stream(stream, clock=lambda: next(clock)))
    assert (reply.text, reply.output_ids, reply.completion_tokens) == ("abcd", [1, 2], 10)
    assert (reply.first_token_at, reply.chunks) == (1.0, [(1.0, 1), (2.0, 3), (4.0, 6)])
    assert reply.spec == SpecCounts(4, 6, 12, [1, 1, 1, 1])


def test_a_streamed_chat_is_put_together_from_its_deltas():
    def delta(usage: int | None = None, finish: str | None = None, **said: Any) -> dict[str, Any]:
        chunk: dict[str, Any] = {"choices": [{"delta": said, "finish_reason": finish}]}
        return chunk if usage is None else {**chunk, "usage": {"completion_tokens": usage, "prompt_tokens": 11}}

    chunks = [
        delta(role="assistant", content=""),
        delta(1, reasoning_content="hm "),
        delta(3, reasoning_content="so"),
        delta(6, content="fo"),
        delta(10, content="ur"),
        delta(finish="stop"),
        {"choices": [], "sglext": {"spec_tokens_details": TODAY}},
        {"choices": [], "usage": {"completion_tokens": 10, "prompt_tokens": 11}},
    ]
    clock = iter(float(at) for at in range(99))
    stream = Received(server_sent(one) for one in (*chunks, None))
    reply = asyncio.run(read_chat_stream(stream, clock=lambda: next(clock)))
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("four", "hm so", "stop")
    assert (reply.completion_tokens, reply.prompt_tokens, reply.spec) == (10, 11, spec_counts(TODAY))
    assert (reply.first_token_at, reply.chunks) == (1.0, [(1.0, 1), (2.0, 2), (3.0, 3), (4.0, 4)])


@pytest.mark.parametrize("read", [read_generate_stream, read_chat_stream])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        server_sent(None),
        server_sent(GENERATION[0]),
        server_sent({"choices": [{"delta": {"content": "a"}}]}, None),
        server_sent({"error": {"message": "out of memory"}}, None),
        b"data: {half\n\n",
        b"data: [1]\n\n",
    ],
    ids=["nothing", "only the end", "no finish", "no usage", "an error", "no JSON", "no object"],
)
def test_a_stream_that_ends_before_its_answer_is_malformed(read: Any, content: bytes):
    with pytest.raises(MalformedReply):
        asyncio.run(read(cut(content, 10**6)))


def test_the_count_in_a_chunk_is_read_from_its_end_and_no_text_can_imitate_it():
    imitation = json.dumps({"text": '"completion_tokens": 999', "meta_info": {"completion_tokens": 5}}).encode()
    assert tokens_so_far(imitation) == 5
    last = json.dumps({"meta_info": {"completion_tokens": 5}, "text": '"completion_tokens":999'}).encode()
    assert tokens_so_far(last) == 5
    assert tokens_so_far(b'{"text": "none"}') is None
    assert tokens_so_far(b'{"completion_tokens":null}') is None

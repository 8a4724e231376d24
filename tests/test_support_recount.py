"""The independent count: right on bodies whose sums can be said by hand."""

from __future__ import annotations

import json

import pytest
import requests

from tests.support.recount import recount
from tests.support.scripted import Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

VERIFIED = {
    "completion_tokens": 10,
    "prompt_tokens": 4,
    "cached_tokens": 3,
    "spec_verify_ct": 4,
    "spec_num_correct_drafts": 6,
    "spec_num_proposed_drafts": 12,
    "spec_correct_drafts_histogram": [1, 1, 1, 1],
}
UNVERIFIED = {"completion_tokens": 1, "prompt_tokens": 5, "cached_tokens": 0}


def test_answers_without_speculative_fields_count_for_tokens_alone() -> None:
    bodies = [json.dumps({"choices": [{"meta_info": info}]}) for info in (VERIFIED, UNVERIFIED, VERIFIED)]
    total = recount(bodies)
    assert (total.answers, total.tokens, total.prompt_tokens, total.cached_tokens) == (3, 21, 13, 6)
    assert (total.verified, total.steps, total.correct, total.histogram) == (2, 8, 12, [2, 2, 2, 2])
    assert total.acceptance_length == 20 / 8
    assert total.acceptance_length_decode == 1 + 12 / 8
    assert total.acceptance_rate == 12 / 24


@pytest.mark.parametrize("older", [False, True], ids=["newer names", "older names"])
def test_every_form_of_an_answer_counts_alike(older: bool) -> None:
    script = Script(speculation=Speculation(), wire=Wire(older_names=older))
    chat = {"messages": [{"role": "user", "content": "Count these"}], "max_tokens": 64}
    streaming = {"stream": True, "return_spec_tokens_details": True, "stream_options": {"include_usage": True}}
    with ScriptedServer(script) as server:

        def post(path: str, body: object) -> str:
            return requests.post(server.base_url + path, json=body, timeout=20).text

        ids = json.loads(post("/v1/tokenize", {"messages": chat["messages"]}))["tokens"]
        asked_by_ids = {"input_ids": ids, "sampling_params": {"max_new_tokens": 64}}
        counts = [
            recount([post("/v1/chat/completions", chat | {"return_meta_info": True})]),
            recount([post("/v1/chat/completions", chat | streaming)]),
            recount([post("/generate", asked_by_ids)]),
            recount([post("/generate", asked_by_ids | {"stream": True})]),
        ]
    assert counts[0].verified == 1
    assert all(count == counts[0] for count in counts)

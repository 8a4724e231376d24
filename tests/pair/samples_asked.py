"""The built-in samples asked of a running server, and what it says about its drafts."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from specforge.datasets.definition import Question
from tools.pair.conversation import harness_question
from tools.pair.holdout import sample_rows

LIMIT = 200
IN_FLIGHT = 4


@dataclass(frozen=True)
class Asked:
    """One conversation: its question, and by turn the answer's text, token ids and ``meta_info``."""

    question: Question
    texts: tuple[str, ...]
    tokens: tuple[list[int], ...]
    meta: tuple[dict[str, Any], ...]

    @property
    def counts(self) -> list[Any]:
        """What must be the same on every server: tokens, steps and drafts, by turn."""
        names = ("completion_tokens", "spec_verify_ct", "spec_num_correct_drafts", "spec_correct_drafts_histogram")
        return [[meta.get(name) for name in names] for meta in self.meta]


def converse(url: str, question: Question) -> Asked:
    """Asks all turns of a question, greedily, each after the server's own answer to the turn before."""
    messages: list[dict[str, Any]] = [dict(message) for message in question.messages()]
    texts, tokens, meta = [], [], []
    for turn in range(1 + len(question.followups)):
        if turn:
            messages += [
                {"role": "assistant", "content": texts[-1]},
                {"role": "user", "content": question.followups[turn - 1]},
            ]
        body = {
            "model": "pair",
            "messages": messages,
            "max_tokens": LIMIT,
            "temperature": 0,
            "return_meta_info": True,
            "return_token_ids": True,
        }
        reply = requests.post(f"{url}/v1/chat/completions", json=body, timeout=300)
        reply.raise_for_status()
        choice = reply.json()["choices"][0]
        texts.append(choice["message"]["content"])
        tokens.append(choice["response_token_ids"])
        meta.append(choice["meta_info"])
    return Asked(question, tuple(texts), tuple(tokens), tuple(meta))


def ask_samples(url: str, dataset: str, in_flight: int = IN_FLIGHT) -> list[Asked]:
    """The dataset's samples, a few at a time, in the file's order; the server's cache is empty at first."""
    requests.post(f"{url}/flush_cache?timeout=30", timeout=60).raise_for_status()
    questions = [harness_question(dataset, row) for name, row in sample_rows() if name == dataset]
    with ThreadPoolExecutor(in_flight) as pool:
        return list(pool.map(lambda question: converse(url, question), questions))


def decode_length(asked: Iterable[Asked]) -> float:
    """``acceptance_length_decode``: one and the correct drafts a verification step."""
    reports = [meta for one in asked for meta in one.meta if meta.get("spec_verify_ct")]
    return 1 + sum(m["spec_num_correct_drafts"] for m in reports) / sum(m["spec_verify_ct"] for m in reports)


def draft_flags(algorithm: str, shape: str, draft: Path | None = None) -> list[str]:
    """SGLang's flags of an algorithm; ``shape`` is steps,topk,nodes."""
    steps, topk, nodes = shape.split(",")
    flags = ["--speculative-algorithm", algorithm, "--speculative-num-draft-tokens", nodes]
    if draft is not None:
        flags += ["--speculative-draft-model-path", str(draft)]
        flags += ["--speculative-num-steps", steps, "--speculative-eagle-topk", topk]
    return flags

"""A count from raw response bodies that shares no code with the harness: what a record's numbers are held against."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

_NAMES = {
    "steps": ("spec_verify_ct",),
    "correct": ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num"),
    "proposed": ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num"),
    "histogram": ("spec_correct_drafts_histogram", "spec_accept_histogram"),
}


@dataclass
class Recount:
    """Sums over the answers of some responses; ``verified`` ones alone where speculation is counted."""

    answers: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    verified: int = 0
    verified_tokens: int = 0
    steps: int = 0
    correct: int = 0
    proposed: int = 0
    histogram: list[int] = field(default_factory=list)

    @property
    def acceptance_length(self) -> float:
        """Tokens per verification step over the verified answers, the first token included."""
        return self.verified_tokens / self.steps

    @property
    def acceptance_length_decode(self) -> float:
        """The same without the first token: one, and the correct drafts of a step."""
        return 1 + self.correct / self.steps

    @property
    def acceptance_rate(self) -> float:
        """Correct drafts of those proposed."""
        return self.correct / self.proposed

    def add(self, info: dict[str, Any]) -> None:
        """Counts one answer by its ``meta_info``."""
        tokens = info["completion_tokens"]
        self.answers += 1
        self.tokens += tokens
        self.prompt_tokens += info["prompt_tokens"]
        self.cached_tokens += info.get("cached_tokens") or 0
        steps = _first(info, "steps") or 0
        if steps > 0:
            self.verified += 1
            self.verified_tokens += tokens
            self.steps += steps
            self.correct += _first(info, "correct") or 0
            self.proposed += _first(info, "proposed") or 0
            histogram = _first(info, "histogram") or []
            self.histogram += [0] * (len(histogram) - len(self.histogram))
            for accepted, count in enumerate(histogram):
                self.histogram[accepted] += count


def recount(responses: Iterable[str]) -> Recount:
    """Counts raw bodies of chat completions or generations, whole or streamed."""
    total = Recount()
    for response in responses:
        for info in _infos(response):
            total.add(info)
    return total


def _first(info: dict[str, Any], what: str) -> Any:
    return next((info[name] for name in _NAMES[what] if name in info), None)


def _infos(response: str) -> Iterator[dict[str, Any]]:
    """What each answer of one body says about itself."""
    if response.startswith("data:"):
        yield from _streamed([json.loads(line[5:]) for line in response.splitlines() if line.startswith("data: {")])
        return
    body = json.loads(response)
    if isinstance(body, dict) and "choices" in body:
        for choice in body["choices"]:
            yield choice.get("meta_info") or body["usage"]
    else:
        for answer in body if isinstance(body, list) else [body]:
            yield answer["meta_info"]


def _streamed(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if "meta_info" in events[-1]:
        yield events[-1]["meta_info"]
        return
    info: dict[str, Any] = {}
    for event in events:
        info |= event.get("usage") or {}
        info |= (event.get("sglext") or {}).get("spec_tokens_details") or {}
    yield info

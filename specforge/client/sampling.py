"""What every request states about sampling, and how each route wants to hear it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Fields of /generate that stand beside sampling_params; whatever else a user adds belongs inside it.
_GENERATE_TOP_LEVEL = frozenset(
    {"lora_path", "return_logprob", "logprob_start_len", "top_logprobs_num", "return_hidden_states", "priority"}
)


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters of a run.

    A server fills what a request leaves out from the model's ``generation_config.json``, differently by
    endpoint, and penalties break losslessness: so each request states all of them.

    Attributes:
        values: ``temperature, top_p, top_k, min_p, repetition_penalty`` in SGLang's names; empty for
            ``--sampling model``, which leaves them to the model.
        seed: the run's seed; round r of a benchmark sends seed + r.
        extra_body: what the user adds to each request.
        template_kwargs: passed to the chat template, such as ``{"enable_thinking": False}``.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    seed: int = 42
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def greedy(cls, seed: int = 42, **changes: float) -> Sampling:
        """Temperature 0 and neutral values for the rest, but for what ``changes`` names."""
        neutral: dict[str, float] = {
            "temperature": 0.0,
            "top_p": 1.0,
            "top_k": -1,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
        }
        return cls(neutral | changes, seed)

    @property
    def is_greedy(self) -> bool:
        """Whether the same prompt must give the same tokens."""
        return bool(self.extra_body.get("temperature", self.values.get("temperature")) == 0)

    def chat_fields(self, max_new_tokens: int, round_index: int) -> dict[str, Any]:
        """The fields of a chat completion."""
        body: dict[str, Any] = {**self.values, "seed": self.seed + round_index, "max_tokens": max_new_tokens}
        if self.template_kwargs:
            body["chat_template_kwargs"] = dict(self.template_kwargs)
        return body | dict(self.extra_body)

    def generate_fields(self, max_new_tokens: int, round_index: int) -> dict[str, Any]:
        """The fields of ``/generate``."""
        extra = dict(self.extra_body)
        top_level = {name: extra.pop(name) for name in list(extra) if name in _GENERATE_TOP_LEVEL}
        params = {**self.values, "sampling_seed": self.seed + round_index, "max_new_tokens": max_new_tokens}
        return {**top_level, "sampling_params": params | extra}

    def as_record(self) -> dict[str, Any]:
        """What the record keeps: enough to ask the same again."""
        return {
            "values": dict(self.values),
            "seed": self.seed,
            "extra_body": dict(self.extra_body),
            "chat_template_kwargs": dict(self.template_kwargs),
        }

"""Before the window: prompts are rendered and counted, and token limits clamped to what the context holds."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from specforge.client.measured import MeasuredClient
from specforge.datasets.model import Message, Prompt
from specforge.load.schedule import ClosedLoop

Tokenizer = Callable[[Sequence[Message]], Awaitable["list[int] | None"]]
"""Renders messages with the model's chat template and gives their token ids; None where it can't."""

_MARGIN = 8  # tokens; the design's allowance for what templates and servers add
_PARALLEL = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds an answer's length.

    Attributes:
        max_new_tokens: asked for, per answer.
        max_model_len: the server's context length; None where it is not known, and nothing is clamped.
        largest_tree: the largest num-draft-tokens of the run: the same clamp for every configuration.
    """

    max_new_tokens: int
    max_model_len: int | None = None
    largest_tree: int = 0

    def clamp(self, prompt_tokens: int | None) -> int:
        """Tokens that may be asked for after a prompt of this length; below 1 where it doesn't fit."""
        if self.max_model_len is None or prompt_tokens is None:
            return self.max_new_tokens
        return min(self.max_new_tokens, self.max_model_len - prompt_tokens - self.largest_tree - _MARGIN)


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """A prompt with all that is known of it before it is sent.

    Attributes:
        prompt: the prompt.
        token_ids: of the first request; None where they can't be known.
        followup_tokens: upper estimates of what each later turn adds to the context.
        static_hash: of the static turns, hex; the same text has the same hash on every machine.
        token_hash: of the first request's token ids, hex; None where they can't be known.
        skip_reason: why the prompt can't be asked of this server; None where it can.
    """

    prompt: Prompt
    token_ids: tuple[int, ...] | None
    followup_tokens: tuple[int, ...]
    static_hash: str
    token_hash: str | None
    skip_reason: str | None = None

    @property
    def prompt_tokens(self) -> int | None:
        """Length of the first request, tokens; None where it can't be known."""
        return None if self.token_ids is None else len(self.token_ids)


def static_hash(prompt: Prompt) -> str:
    """Hash of everything of a prompt that is known before the model answers."""
    static = {"messages": [dict(message) for message in prompt.messages], "followups": list(prompt.followups)}
    return hashlib.sha256(orjson.dumps(static, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def token_hash(token_ids: Sequence[int]) -> str:
    """Hash of token ids."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()[:16]


def server_tokenizer(client: MeasuredClient, template_kwargs: Mapping[str, Any]) -> Tokenizer:
    """A tokenizer that asks the server, which renders with the template that its chat completions use."""

    async def tokenize(messages: Sequence[Message]) -> list[int] | None:
        body: dict[str, Any] = {"messages": list(messages)}
        if template_kwargs:
            body["chat_template_kwargs"] = dict(template_kwargs)
        status, data = await client.post("/v1/tokenize", body)
        tokens = data.get("tokens") if status == 200 and isinstance(data, dict) else None
        return tokens if isinstance(tokens, list) else None

    return tokenize


async def no_tokenizer(messages: Sequence[Message]) -> list[int] | None:  # noqa: ARG001
    """For a server that can't be asked: no length is known."""
    return None


async def prepare(
    prompts: Sequence[Prompt], tokenize: Tokenizer, *, has_images: bool | None = None
) -> list[PreparedPrompt]:
    """Counts and hashes each prompt, a few at a time; one that is asked several times is counted once.

    Args:
        prompts: what will be asked.
        tokenize: see :data:`Tokenizer`.
        has_images: whether the model takes images; False skips the prompts that have one.

    Raises:
        RequestFailure: the server went away meanwhile.
    """
    hash_of = {_identity(prompt): "" for prompt in prompts}
    for prompt in prompts:
        hash_of[_identity(prompt)] = hash_of[_identity(prompt)] or static_hash(prompt)
    distinct = {hash_of[_identity(prompt)]: prompt for prompt in prompts}
    known: dict[str, PreparedPrompt] = {}
    followup_cost: dict[str, int] = {}

    async def cost(text: str) -> int:
        if text not in followup_cost:
            ids = await tokenize([{"role": "user", "content": text}])
            followup_cost[text] = 0 if ids is None else len(ids)
        return followup_cost[text]

    async def one(item: tuple[str, Prompt]) -> None:
        hashed, prompt = item
        if prompt.has_image:
            # How many tokens an image takes is the server's secret, so nothing is known of the length.
            reason = "the server's model takes no images" if has_images is False else None
            known[hashed] = PreparedPrompt(prompt, None, (), hashed, None, reason)
            return
        ids = await tokenize(prompt.messages)
        followups = tuple([await cost(text) for text in prompt.followups])
        if ids is None:
            known[hashed] = PreparedPrompt(prompt, None, (), hashed, None)
        else:
            known[hashed] = PreparedPrompt(prompt, tuple(ids), followups, hashed, token_hash(ids))

    await ClosedLoop(_PARALLEL).run(list(distinct.items()), one)
    return [replace(known[hash_of[_identity(prompt)]], prompt=prompt) for prompt in prompts]


def _identity(prompt: Prompt) -> tuple[int, int]:
    """Prompts that share their texts, as repeats do, without looking into them."""
    return id(prompt.messages), id(prompt.followups)

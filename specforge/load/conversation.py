"""One prompt, all its turns, with bounded retries."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specforge.client.measured import MeasuredClient, RequestFailure
from specforge.client.reply import Reply
from specforge.client.sampling import Sampling
from specforge.client.wire import Route
from specforge.load.prepare import Limits, PreparedPrompt, Tokenizer
from specforge.scoring.thinking import split_thinking

MAX_ATTEMPTS = 3
_BACKOFF = (0.5, 2.0)  # s, before the second and the third attempt


@dataclass(slots=True)
class Outcome:
    """What became of one prompt in one round.

    Attributes:
        prepared: the prompt.
        round_index: the round.
        replies: one an answered turn.
        status: ``ok``, ``failed``, ``too_long`` or ``skipped``.
        error: why it is not ok, in one line.
        retries: attempts beyond the first, over all turns.
        clamped: whether a turn was given fewer tokens than asked for, since the context holds no more.
    """

    prepared: PreparedPrompt
    round_index: int
    replies: list[Reply] = field(default_factory=list)
    status: str = "ok"
    error: str | None = None
    retries: int = 0
    clamped: bool = False


class Conversations:
    """Runs prompts against one server.

    Args:
        client: sends the requests.
        sampling: what each request states.
        limits: the token limits.
        tokenize: gives token ids for later turns where the route wants them.
        on_connection_lost: called after a lost connection; raises where the server is gone for good.
    """

    def __init__(
        self,
        client: MeasuredClient,
        sampling: Sampling,
        limits: Limits,
        tokenize: Tokenizer,
        on_connection_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._sampling = sampling
        self._limits = limits
        self._tokenize = tokenize
        self._on_connection_lost = on_connection_lost
        self._run_id = uuid.uuid4().hex[:12]
        self._sent = 0

    async def run(self, prepared: PreparedPrompt, round_index: int) -> Outcome:
        """Asks all turns of a prompt. A request that fails for good ends it; that is an outcome, not an exception."""
        outcome = Outcome(prepared, round_index)
        if prepared.skip_reason is not None:
            outcome.status, outcome.error = "skipped", prepared.skip_reason
            return outcome
        messages: list[Mapping[str, Any]] = list(prepared.prompt.messages)
        length = prepared.prompt_tokens
        try:
            for turn in range(1 + len(prepared.prompt.followups)):
                if turn:
                    previous = outcome.replies[-1]
                    messages.append({"role": "assistant", "content": split_thinking(previous.text).answer})
                    messages.append({"role": "user", "content": prepared.prompt.followups[turn - 1]})
                    if length is not None:
                        length = (
                            previous.prompt_tokens + previous.completion_tokens + prepared.followup_tokens[turn - 1]
                        )
                outcome.replies.append(await self._turn(outcome, messages, length, turn))
        except RequestFailure as failure:
            outcome.status = "too_long" if failure.kind == "too_long" else "failed"
            outcome.error = f"{prepared.prompt.row_id}: {failure}"
        return outcome

    async def _turn(self, outcome: Outcome, messages: list[Mapping[str, Any]], length: int | None, turn: int) -> Reply:
        input_ids: list[int] | None = None
        if self._client.wire.route is Route.GENERATE:
            first = outcome.prepared.token_ids
            input_ids = list(first) if turn == 0 and first is not None else await self._tokenize(messages)
            if input_ids is None:
                raise RequestFailure("status", "the server could not tokenize the conversation", retryable=False)
            length = len(input_ids)
        max_new_tokens = self._limits.clamp(length)
        if max_new_tokens < 1:
            raise RequestFailure(
                "too_long",
                f"a prompt of {length} tokens leaves no room for an answer in a context of "
                f"{self._limits.max_model_len}",
                retryable=False,
            )
        outcome.clamped |= max_new_tokens < self._limits.max_new_tokens
        body = self._client.wire.body(messages, input_ids, self._sampling, max_new_tokens, outcome.round_index)
        for attempt in range(MAX_ATTEMPTS):
            self._sent += 1
            try:
                return await self._client.send(body, f"specforge-{self._run_id}-{self._sent}")
            except RequestFailure as failure:
                if failure.kind == "connection":
                    self._on_connection_lost()
                if not failure.retryable or attempt == MAX_ATTEMPTS - 1:
                    raise
                outcome.retries += 1
                await asyncio.sleep(_BACKOFF[attempt])
        raise AssertionError("unreachable: the last attempt returns or raises")

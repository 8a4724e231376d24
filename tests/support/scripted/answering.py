"""From a request to the bytes of its answer, as the script has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.scripted import asked as asking
from tests.support.scripted import bodies
from tests.support.scripted.asked import Asked
from tests.support.scripted.replies import Reply, reply_to, token_ids
from tests.support.scripted.script import Script

_MOST_CACHED_BODIES = 4096


class Answers:
    """Answers to generation requests. Equal requests have their bodies made once."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._seen: set[str] = set()
        self._decode: dict[int, str] = {}
        self._alike: dict[tuple[int, bool, int], Reply] = {}
        self._bodies: dict[tuple[str, bytes], list[bytes]] = {}

    def tokens(self, body: dict[str, Any]) -> list[int]:
        """The token ids of a prompt or of messages; Refused and KeyError for neither."""
        if "messages" in body:
            prompt = asking.render(body["messages"], images=self._script.wire.images)
        else:
            prompt = body["prompt"]
        ids = token_ids(prompt)
        self._decode.update(asking.vocabulary(prompt, ids))
        return ids

    def forget_prompts(self) -> None:
        """Empties the prefix cache."""
        self._seen.clear()

    def read(self, path: str, body: Any) -> Asked:
        """What a request asks for; raises Refused for what SGLang answers with 400."""
        if path == "/generate":
            return asking.generate(body, self._script.wire, self._decode)
        return asking.chat(body, self._script.wire)

    def seconds(self, asked: Asked) -> float:
        """How long the whole answer takes at the script's pace."""
        pace = self._script.pace
        if not pace.per_step:
            return pace.per_request
        return max(bodies.latencies(reply, pace)[1] for _, _, reply in self._replies(asked))

    def whole(self, path: str, request: bytes, asked: Asked, *, aborted: bool = False) -> bytes:
        """The body of an answer that is not streamed."""
        return self._once(path, request, asked, lambda: [self._whole(path, asked, aborted)])[0]

    def events(self, path: str, request: bytes, asked: Asked) -> list[bytes]:
        """The body of a streamed answer: one item for each decoding step, and one that ends the stream."""
        return self._once(path, request, asked, lambda: self._events(path, asked))

    def _once(self, path: str, request: bytes, asked: Asked, make: Callable[[], list[bytes]]) -> list[bytes]:
        if self._script.wire.prefix_cache or "rid" in asked.body:
            return make()  # something beside the request decides
        key = (path, request)
        if key not in self._bodies:
            if len(self._bodies) >= _MOST_CACHED_BODIES:
                return make()
            self._bodies[key] = make()
        return self._bodies[key]

    def _replies(self, asked: Asked) -> list[tuple[str, int, Reply]]:
        """For each answer asked for: the prompt, the length of the prompt in tokens, the answer."""
        return [
            (prompt, len(ids), self._reply(asked, prompt, sample))
            for prompt, ids in asked.prompts
            for sample in range(asked.samples)
        ]

    def _reply(self, asked: Asked, prompt: str, sample: int) -> Reply:
        key = (asked.max_tokens, asked.ignore_end, sample)
        if key in self._alike:
            return self._alike[key]
        reply = reply_to(
            prompt,
            max_tokens=asked.max_tokens,
            replies=self._script.replies,
            speculation=self._script.speculation,
            ignore_end=asked.ignore_end,
            sample=sample,
        )
        if self._script.replies.alike:
            self._alike[key] = reply
        return reply

    def _info(self, asked: Asked, prompt: str, prompt_tokens: int, reply: Reply, at: int, aborted: bool) -> Any:
        cached = 0
        if self._script.wire.prefix_cache:
            cached = prompt_tokens - 1 if prompt in self._seen else 0
            self._seen.add(prompt)
        return bodies.meta_info(
            reply,
            self._script.wire,
            self._script.pace,
            rid=asked.body.get("rid") or f"scripted-{at}",
            prompt_tokens=prompt_tokens,
            cached=cached,
            aborted=aborted,
        )

    def _whole(self, path: str, asked: Asked, aborted: bool) -> bytes:
        told = [
            (reply, self._info(asked, prompt, tokens, reply, at, aborted))
            for at, (prompt, tokens, reply) in enumerate(self._replies(asked))
        ]
        if path == "/generate":
            answers = [bodies.generation(reply, info) for reply, info in told]
            return bodies.encoded(answers if asked.batched else answers[0])
        wire, (_, ids) = self._script.wire, asked.prompts[0]
        choices = []
        for at, (reply, info) in enumerate(told):
            choice = bodies.chat_choice(at, reply, info)
            if asked.body.get("return_token_ids") and wire.token_ids:
                choice.update(prompt_token_ids=list(ids), response_token_ids=list(reply.output_ids))
            if asked.body.get("return_meta_info") and wire.meta_info:
                choice["meta_info"] = info
            choices.append(choice)
        tokens = sum(len(reply.output_ids) for reply, _ in told)
        return bodies.encoded(bodies.chat_completion(told[0][1]["id"], self._model(asked), choices, len(ids), tokens))

    def _events(self, path: str, asked: Asked) -> list[bytes]:
        prompt, tokens, reply = self._replies(asked)[0]
        info = self._info(asked, prompt, tokens, reply, 0, False)
        if path == "/generate":
            return list(bodies.generation_events(reply, info))
        options = asked.body.get("stream_options") or {}
        return list(
            bodies.chat_events(
                reply,
                info,
                model=self._model(asked),
                with_usage=bool(options.get("include_usage")),
                with_details=bool(asked.body.get("return_spec_tokens_details")) and self._script.wire.meta_info,
            )
        )

    def _model(self, asked: Asked) -> str:
        return asked.body.get("model") or self._script.model

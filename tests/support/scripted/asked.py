"""What a generation request asks for, read off its body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.scripted.replies import pieces, token_ids
from tests.support.scripted.script import Wire

_GENERATE_DEFAULT_TOKENS = 128
_NO_STREAM = {
    "return_token_ids": "return_token_ids is not supported with streaming on /v1/chat/completions. "
    "Please set stream=false when using return_token_ids=true.",
    "return_meta_info": "return_meta_info is not supported with streaming. "
    "Please set stream=false when using return_meta_info=true.",
}


class Refused(Exception):
    """The request gets a 400 with this message."""


@dataclass(frozen=True)
class Asked:
    """A generation request.

    ``prompts`` holds one rendered prompt and its token ids for each thing asked; ``batched`` says that the answer is
    a list. ``samples`` is how many answers each gets.
    """

    prompts: tuple[tuple[str, tuple[int, ...]], ...]
    batched: bool
    samples: int
    max_tokens: int
    stream: bool
    ignore_end: bool
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All that was asked, for a fault to look into."""
        return "\n".join(prompt for prompt, _ in self.prompts)


def render(messages: Any, *, images: bool) -> str:
    """Chat messages through the scripted model's template.

    Raises Refused for what is no list of messages, and for an image where none is understood.
    """
    if not isinstance(messages, list):
        raise Refused("1 validation error: {'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}")
    turns = []
    for message in messages:
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = "".join(_part(part, images) for part in content)
        turns.append(f"<|{message.get('role', 'user')}|>\n{content}\n")
    return "".join(turns) + "<|assistant|>\n"


def _part(part: Mapping[str, Any], images: bool) -> str:
    if part.get("type") == "text":
        return str(part["text"])
    if not images:
        raise Refused(f"Model only supports text input; received unsupported content type '{part.get('type')}'.")
    return "<|image|>"


def chat(body: Mapping[str, Any], wire: Wire) -> Asked:
    """Reads the body of ``/v1/chat/completions``; raises Refused as SGLang answers 400."""
    stream = bool(body.get("stream"))
    for name, message in _NO_STREAM.items():
        if stream and body.get(name) and name not in _ignored(wire):
            raise Refused(message)
    prompt = render(body.get("messages"), images=wire.images)
    ids = tuple(token_ids(prompt))
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or wire.context_length - len(ids) - 1
    return _checked(
        wire,
        Asked(
            prompts=((prompt, ids),),
            batched=False,
            samples=body.get("n") or 1,
            max_tokens=limit,
            stream=stream,
            ignore_end=bool(body.get("ignore_eos")),
            body=body,
        ),
    )


def generate(body: Mapping[str, Any], wire: Wire, decode: Mapping[int, str]) -> Asked:
    """Reads the body of ``/generate``.

    ``decode`` gives the text of token ids seen before, so that a prompt sent as ids is answered as its text is.
    """
    text: Any = body.get("text")
    ids: Any = body.get("input_ids")
    if text is None and not ids:
        raise Refused("Either text, input_ids or input_embeds should be provided.")
    prompts: Sequence[tuple[str, tuple[int, ...]]]
    if text is not None:
        batched = isinstance(text, list)
        prompts = [(item, tuple(token_ids(item))) for item in (text if batched else [text])]
    else:
        batched = isinstance(ids[0], list)
        prompts = [
            ("".join(decode.get(token, f" #{token}") for token in item), tuple(item))
            for item in (ids if batched else [ids])
        ]
    sampling = body.get("sampling_params") or {}
    samples = sampling.get("n") or 1
    return _checked(
        wire,
        Asked(
            prompts=tuple(prompts),
            batched=batched or samples > 1,
            samples=samples,
            max_tokens=sampling.get("max_new_tokens") or _GENERATE_DEFAULT_TOKENS,
            stream=bool(body.get("stream")),
            ignore_end=bool(sampling.get("ignore_eos")),
            body=body,
        ),
    )


def _ignored(wire: Wire) -> set[str]:
    return ({"return_meta_info"} if not wire.meta_info else set()) | (
        {"return_token_ids"} if not wire.token_ids else set()
    )


def _checked(wire: Wire, asked: Asked) -> Asked:
    for name in wire.refuses:
        if name in asked.body:
            raise Refused(f"{name} is not supported.")
    for _, ids in asked.prompts:
        if len(ids) + asked.max_tokens > wire.context_length:
            raise Refused(
                f"Requested token count exceeds the model's maximum context length of {wire.context_length} tokens. "
                f"You requested a total of {len(ids) + asked.max_tokens} tokens: {len(ids)} tokens from the input "
                f"messages and {asked.max_tokens} tokens for the completion."
            )
    return asked


def vocabulary(prompt: str, ids: Sequence[int]) -> dict[int, str]:
    """The texts of a prompt's token ids."""
    return dict(zip(ids, pieces(prompt), strict=True))

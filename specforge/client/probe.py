"""Finding out, once per server, which route carries the measured requests and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specforge.client.control import ControlClient
from specforge.client.wire import Route, Wire
from specforge.errors import ServerError

_QUESTION = [{"role": "user", "content": "Hi"}]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server can do for a measurement.

    Attributes:
        wire: how the measured requests are asked.
        can_tokenize: whether ``/v1/tokenize`` renders and tokenizes messages.
        needs_template: whether prompts must be rendered here, with the model tokenizer's own template.
        max_model_len: the context length, tokens; None where the server doesn't say.
        has_images: whether the model takes images; None where the server doesn't say.
        model_path: the model as the server names it; None where it doesn't say.
        notes: what can't be known of this server, one line each.
    """

    wire: Wire
    can_tokenize: bool
    needs_template: bool
    max_model_len: int | None
    has_images: bool | None
    model_path: str | None
    notes: tuple[str, ...] = ()


def probe(control: ControlClient, *, stream: bool = False) -> Capabilities:
    """Sends a one-token request or two and says how the server is to be measured.

    Raises:
        ServerError: nothing there completes a chat or generates text.
    """
    cards = control.models()
    model = str(cards[0].get("id", "default")) if cards else "default"
    can_tokenize = control.tokenize(_QUESTION) is not None
    status, answer = control.post(
        "/v1/chat/completions", _chat_body(model, return_meta_info=True, return_token_ids=True)
    )
    if status != 200:
        # A strict server refuses fields that it doesn't know.
        status, answer = control.post("/v1/chat/completions", _chat_body(model))
    chat_works = status == 200 and isinstance(answer.get("usage"), dict)
    has_meta_info = chat_works and _has_meta_info(answer)
    generate_works = not has_meta_info and _generates(control)
    if not chat_works and not generate_works:
        raise ServerError(
            f"{control.endpoint.base_url} is no SGLang server: "
            f"/v1/chat/completions answered {status} without a completion"
        )
    notes: list[str] = []
    needs_template = False
    if stream:
        # Streamed chat has no token ids; /generate has, and tells how many tokens each chunk holds.
        use_generate = can_tokenize and (generate_works or _generates(control))
    else:
        use_generate = not has_meta_info and generate_works
        needs_template = use_generate and not can_tokenize
    wire = Wire(Route.GENERATE if use_generate else Route.CHAT, stream, has_meta_info, model)
    if wire.route is Route.CHAT and not has_meta_info:
        notes.append("the server reports no meta_info: acceptance and token ids can't be known")
    if not can_tokenize and not needs_template:
        notes.append("the server has no /v1/tokenize: prompt lengths can't be known, nothing is clamped")
    return Capabilities(
        wire=wire,
        can_tokenize=can_tokenize,
        needs_template=needs_template,
        max_model_len=_context_length(control, cards),
        has_images=_bool_of(control.model_info(), "has_image_understanding"),
        model_path=_model_path(control, cards),
        notes=tuple(notes),
    )


def _chat_body(model: str, **fields: bool) -> dict[str, Any]:
    return {"model": model, "messages": _QUESTION, "max_tokens": 1, "temperature": 0, **fields}


def _has_meta_info(answer: dict[str, Any]) -> bool:
    choices = answer.get("choices")
    return bool(choices) and isinstance(choices, list) and bool(choices[0].get("meta_info"))


def _generates(control: ControlClient) -> bool:
    body = {"text": "Hi", "sampling_params": {"max_new_tokens": 1, "temperature": 0}}
    status, answer = control.post("/generate", body)
    return status == 200 and isinstance(answer.get("meta_info"), dict)


def _context_length(control: ControlClient, cards: list[dict[str, Any]]) -> int | None:
    lengths = [card.get("max_model_len") for card in cards[:1]]
    lengths.append((control.server_info() or {}).get("context_length"))
    known = [length for length in lengths if isinstance(length, int) and length > 0]
    return min(known) if known else None


def _model_path(control: ControlClient, cards: list[dict[str, Any]]) -> str | None:
    for source in (control.model_info() or {}, control.server_info() or {}, cards[0] if cards else {}):
        path = source.get("model_path") or source.get("root")
        if path:
            return str(path)
    return None


def _bool_of(source: dict[str, Any] | None, key: str) -> bool | None:
    value = (source or {}).get(key)
    return value if isinstance(value, bool) else None

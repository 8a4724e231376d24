"""Request bodies in, errors out: what every endpoint shares."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from aiohttp import web

from specforge.errors import RequestError


class BadBody(RequestError):
    """A body that is no JSON, or whose fields have other types than the endpoint's."""

    kind = "Bad Request"
    """The `type` of the error's body."""


class BadCombination(BadBody):
    """Fields that can't be asked for together."""

    kind = "BadRequest"


async def read_object(request: web.Request, *, required: bool = True) -> dict[str, Any]:
    """The JSON object a request carries. Raises BadBody for anything else; an empty body may stand for {}."""
    raw = await request.read()
    if not raw and not required:
        return {}
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadBody(f"JSON decode error: {error}") from error
    if not isinstance(body, dict):
        raise BadBody(f"body: Input should be a dictionary, got {type(body).__name__}")
    return body


def typed(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """A field of the body, or the default where it is absent or null. Raises BadBody for another type."""
    value = body.get(name)
    if value is None:
        return default
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(one.__name__ for one in kinds)
        raise BadBody(f"{name}: Input should be a valid {expected}, got {value!r}")
    return value


def json_response(content: Any, status: int = 200) -> web.Response:
    """Content as JSON."""
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")


def openai_error(message: str, kind: str = "BadRequestError", status: int = 400) -> web.Response:
    """An error as the OpenAI endpoints give it."""
    content = {"object": "error", "message": message, "type": kind, "param": None, "code": status}
    return json_response(content, status)


def native_error(message: str, status: int = 400) -> web.Response:
    """An error as /generate gives it."""
    return json_response({"error": {"message": message}}, status)


def event(content: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(content) + b"\n\n"


DONE = b"data: [DONE]\n\n"


async def event_stream(request: web.Request) -> web.StreamResponse:
    """A prepared response for server-sent events."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    return response


def nonnull(**values: Any) -> Iterator[tuple[str, Any]]:
    """The given values that are not None."""
    return ((name, value) for name, value in values.items() if value is not None)

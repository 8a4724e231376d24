"""The application: routes, errors and authorization."""

import hmac
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from aiohttp import web
from aiohttp.typedefs import Middleware

from specforge.engine.build import Engine
from specforge.engine.server.about import About
from specforge.engine.server.bodies import BadBody, json_response, native_error, openai_error
from specforge.engine.server.chat import chat_completions, completions
from specforge.engine.server.generate import generate
from specforge.engine.server.generation import Generator
from specforge.errors import RequestError

_LARGEST_BODY = 64 << 20

_OPEN = ("/ready", "/health", "/metrics")
"""Paths that need no key, by their beginnings."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

logger = logging.getLogger(__name__)


def create_app(engine: Engine, argv: Sequence[str]) -> web.Application:
    """SGLang's routes over an engine whose scheduler runs."""
    generator = Generator(engine)
    about = About(generator, argv)
    key = engine.arguments.api_key
    middlewares: list[Middleware] = [_errors] if key is None else [_authorization(key), _errors]
    app = web.Application(middlewares=middlewares, client_max_size=_LARGEST_BODY)
    get, post = app.router.add_get, app.router.add_post
    get("/", about.root)
    get("/ready", about.ready)
    get("/health", about.health)
    get("/health_generate", about.health)
    for path in ("/server_info", "/get_server_info"):
        get(path, about.server_info)
    for path in ("/model_info", "/get_model_info"):
        get(path, about.model_info)
    get("/v1/models", about.models)
    for path in ("/v1/tokenize", "/tokenize"):
        post(path, about.tokenize)
    for path in ("/v1/detokenize", "/detokenize"):
        post(path, about.detokenize)
    get("/flush_cache", about.flush_cache)
    post("/flush_cache", about.flush_cache)
    post("/abort_request", about.abort_request)
    post("/generate", partial(generate, generator=generator))
    post("/v1/chat/completions", partial(chat_completions, generator=generator))
    post("/v1/completions", partial(completions, generator=generator))
    return app


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Refusals with SGLang's status and one line that says why."""
    try:
        return await handler(request)
    except BadBody as error:
        return openai_error(str(error), error.kind)
    except RequestError as error:
        return native_error(str(error)) if request.path == "/generate" else openai_error(str(error))
    except web.HTTPNotFound:
        return json_response({"detail": "Not Found"}, 404)
    except web.HTTPMethodNotAllowed:
        return json_response({"detail": "Method Not Allowed"}, 405)
    except web.HTTPRequestEntityTooLarge:
        return openai_error(f"The body is larger than {_LARGEST_BODY} bytes.", "Bad Request", 413)
    except ConnectionError:
        # The client hung up: there is nobody to answer, and the generation has been aborted on the way here.
        logger.info("%s: the client hung up", request.path)
        raise


def _authorization(key: str) -> Middleware:
    expected = f"Bearer {key}".encode()

    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode()
        if request.path.startswith(_OPEN) or hmac.compare_digest(given, expected):
            return await handler(request)
        return json_response({"error": "Unauthorized"}, 401)

    return check

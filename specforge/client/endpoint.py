"""Where a server is and how it wants to be spoken to."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from specforge.errors import UsageError

# An address may come without a scheme; then a colon tells a user and password from a mail address.
_USER = re.compile(r"(://|(?:^|(?<=[\s=]))(?=[^\s/@:]+:))[^\s/]+@")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address with whatever it asks of each request.

    Attributes:
        base_url: scheme, host, port and possibly a path; no slash at the end.
        api_key: sent as ``Authorization: Bearer``; None sends nothing.
        extra_headers: further headers, as (name, value) pairs.
    """

    base_url: str
    api_key: str | None = None
    extra_headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, url: str, api_key: str | None = None, extra_headers: tuple[tuple[str, str], ...] = ()) -> Endpoint:
        """Reads ``--base-url``; a trailing ``/v1``, which OpenAI clients want, is taken off.

        A user and password in it become a header (RFC 7617), so that ``base_url`` can be shown and recorded.

        Raises:
            UsageError: it is no http or https URL with a host, or names a user beside ``api_key``.
        """
        parts = urlsplit(url if "://" in url else f"http://{url}")
        user, at, host = parts.netloc.rpartition("@")
        try:
            well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            well_formed = False
        if not well_formed:
            raise UsageError(
                f"--base-url: {without_user(url)!r} is not a server's address; expected http(s)://host[:port][/path]"
            )
        if at and api_key is not None:
            raise UsageError(f"--base-url: {without_user(url)!r} names a user, and there is a key; only one is sent")
        if at:
            named = b64encode(unquote(user).encode()).decode()
            extra_headers = (("Authorization", f"Basic {named}"), *extra_headers)
        path = parts.path.rstrip("/").removesuffix("/v1")
        return cls(f"{parts.scheme}://{host}{path}", api_key, extra_headers)

    def url(self, path: str) -> str:
        """The full address of one of the server's routes, ``path`` with its leading slash."""
        return self.base_url + path

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        headers = dict(self.extra_headers)
        if self.api_key is not None:
            headers.setdefault("Authorization", f"Bearer {self.api_key}")
        return headers


def without_user(text: str) -> str:
    """A text without the user and password of each address in it."""
    return _USER.sub(r"\1", text)


def parse_header(text: str) -> tuple[str, str]:
    """Reads one ``--header "Name: value"``.

    Raises:
        UsageError: there is no name, no colon, or a line break.
    """
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text or "\r" in text:
        raise UsageError(f"--header: {text!r} is not a header; expected 'Name: value'")
    return name.strip(), value.strip()

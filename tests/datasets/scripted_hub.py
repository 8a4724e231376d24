"""A Hugging Face Hub on loopback: the routes that huggingface_hub and datasets ask for, over files given as bytes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """A dataset's repository.

    Attributes:
        files: by path, their bytes.
        gated: whether its files need a token.
        revisions: further names of its one commit, beside the commit itself and ``main``.
    """

    files: Mapping[str, bytes]
    gated: bool = False
    revisions: tuple[str, ...] = ()

    @property
    def commit(self) -> str:
        """Forty hex digits that depend on the files."""
        listing = "".join(f"{path}:{hashlib.sha1(content).hexdigest()}\n" for path, content in self.files.items())
        return hashlib.sha1(listing.encode()).hexdigest()

    def knows(self, revision: str) -> bool:
        """Whether the revision is one of this repository."""
        return revision in ("main", self.commit, *self.revisions)


@dataclass
class ScriptedHub:
    """The running Hub.

    Attributes:
        url: for ``HF_ENDPOINT``.
        token: the one that opens gated repositories.
        requests: each request as ``METHOD path``, in order.
    """

    url: str
    token: str
    requests: list[str] = field(default_factory=list)


@contextmanager
def scripted_hub(repositories: Mapping[str, Repository]) -> Iterator[ScriptedHub]:
    """Serves these repositories until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    hub = ScriptedHub(f"http://127.0.0.1:{server.server_address[1]}", "scripted-token")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            del format, args

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(body)

        def _answer(self, body: bytes = b"") -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(f"{self.command} {path}")
            for name, repository in repositories.items():
                if path == f"/api/datasets/{name}" or path.startswith(f"/api/datasets/{name}/"):
                    return self._api(name, repository, path.removeprefix(f"/api/datasets/{name}").strip("/"), body)
                if path.startswith(f"/datasets/{name}/resolve/"):
                    return self._file(repository, path.removeprefix(f"/datasets/{name}/resolve/"))
            self._send(401, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
            return None

        def _opens(self, repository: Repository) -> bool:
            return not repository.gated or self.headers.get("Authorization") == f"Bearer {hub.token}"

        def _api(self, name: str, repository: Repository, rest: str, body: bytes) -> None:
            action, _, argument = rest.partition("/")
            revision = argument.split("/")[0] if action else "main"
            if not repository.knows(revision):
                return self._send(404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"})
            if action in ("", "revision"):
                siblings = [{"rfilename": path} for path in repository.files]
                gated = "auto" if repository.gated else False
                self._send(200, {"id": name, "sha": repository.commit, "siblings": siblings, "gated": gated})
            elif not self._opens(repository):
                self._send(403, {"error": "gated"}, {"X-Error-Code": "GatedRepo"})
            elif action == "tree":
                folder = "/".join(argument.split("/")[1:])
                self._send(200, [self._entry(repository, path) for path in repository.files if path.startswith(folder)])
            elif action == "paths-info":
                asked = json.loads(body)["paths"] if body.startswith(b"{") else []
                self._send(200, [self._entry(repository, path) for path in asked if path in repository.files])
            else:
                self._send(404, {"error": "no such route"}, {})
            return None

        def _entry(self, repository: Repository, path: str) -> dict[str, object]:
            content = repository.files[path]
            return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

        def _file(self, repository: Repository, rest: str) -> None:
            revision, _, path = rest.partition("/")
            if not self._opens(repository):
                return self._send(403, {"error": "gated"}, {"X-Error-Code": "GatedRepo"})
            if not repository.knows(revision):
                return self._send(404, {"error": "no revision"}, {"X-Error-Code": "RevisionNotFound"})
            if path not in repository.files:
                return self._send(404, {"error": "no entry"}, {"X-Error-Code": "EntryNotFound"})
            content = repository.files[path]
            headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'}
            self._send_bytes(200, content, headers | {"Content-Type": "application/octet-stream"})
            return None

        def _send(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
            self._send_bytes(
                status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})}
            )

        def _send_bytes(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    server.RequestHandlerClass = Handler
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

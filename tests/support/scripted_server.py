"""A scripted SGLang: a server whose every answer, delay and fault a script decides.

In a test, on a thread of its own::

    with ScriptedServer(Script(pace=Pace(per_request=0.25))) as server:
        requests.get(server.base_url + "/server_info")

As a program started by a launcher, with SGLang's flags behind its own two::

    python tests/support/scripted_server.py --script FILE.json --script-log LOG.jsonl --model-path M --port P ...

``FILE.json`` is what ``tests.support.scripted.script.dump`` writes. The log gets one line when a server starts
(``{"event": "start", "argv": [...], "pid": ...}``) and one for each request, with the raw body of its response.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run by path: the helpers beside this file must not hide packages of the same name
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from aiohttp import web

from tests.support.hosting import HostedApp, listener, serve
from tests.support.scripted import Script, flags
from tests.support.scripted import script as scripts
from tests.support.scripted.app import ScriptedApp

_USAGE_ERROR = 2


class ScriptedServer(HostedApp):
    """A scripted server on a thread, on a free loopback port; a context manager.

    A script's ``exit`` fault closes its port and every connection, as a dying process does.
    """

    def __init__(self, script: Script | None = None, *, port: int = 0, log_path: Path | None = None) -> None:
        super().__init__(port)
        self.script = script or Script()
        self.exit_code: int | None = None
        self._app = ScriptedApp(self.script, die=self._die, log_path=log_path)

    async def application(self) -> web.Application:
        ready_after = self.script.start.ready_after
        if ready_after:
            self._app.ready = False
            asyncio.get_running_loop().call_later(ready_after, setattr, self._app, "ready", True)
        return self._app.application()

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The log so far: each request with its path, body, status and raw response."""
        return list(self._app.log.entries)

    @property
    def generations(self) -> list[dict[str, Any]]:
        """The log's generation requests, in the order in which they ended."""
        return [entry for entry in self.requests if entry["ordinal"] is not None]

    @property
    def max_in_flight(self) -> int:
        """The most generation requests that were open at once."""
        return self._app.log.max_in_flight

    def become_ready(self) -> None:
        """Ends what the script's ``ready_after`` began."""
        self._app.ready = True

    def _die(self, code: int) -> None:
        self.exit_code = code
        self.end()


def main(argv: Sequence[str]) -> int:
    """Serves until told to end; returns the exit status."""
    given = flags.parse(argv)
    scenes = scripts.load(Path(given.pop("--script"))) if "--script" in given else []
    log_path = Path(given.pop("--script-log")) if "--script-log" in given else None
    script = next((scene.script for scene in scenes if scene.applies(given)), Script())
    if "--help" in given:
        print(flags.usage(script.wire.version))
        return 0
    try:
        flags.check(given, script.wire.version)
    except flags.UnknownFlag as unknown:
        print(f"launch_server.py: error: unrecognized arguments: {unknown}", file=sys.stderr)
        return _USAGE_ERROR
    script = flags.apply(script, given)
    if log_path is not None:
        with log_path.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"event": "start", "argv": list(argv), "pid": os.getpid()}) + "\n")
    for line in script.start.log_lines:
        print(line, flush=True)
    if script.start.exit_code is not None:
        return script.start.exit_code
    for _ in range(script.start.children):
        marker = f"--scripted-child-of={os.getpid()}"
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()", marker])
    if script.start.ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(script.start.bind_after)
    app = ScriptedApp(script, die=os._exit, log_path=log_path, arguments=flags.arguments(given), command=argv)
    bound = listener(given.get("--host", "127.0.0.1"), int(given.get("--port", "30000")))
    asyncio.run(_serve_until_ended(app, bound))
    return 0


async def _serve_until_ended(app: ScriptedApp, bound: socket.socket) -> None:
    app.ready = False
    await serve(app.application(), bound)
    await asyncio.sleep(app.script.start.ready_after)
    app.ready = True
    print("The server is fired up and ready to roll!", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

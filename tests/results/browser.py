"""A headless Chromium looked at through its debugging protocol: what a page asks for, says, and how wide it is."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Visit:
    """What happened while a page was open.

    Attributes:
        requests: addresses asked for, the page's own included.
        complaints: uncaught errors and console messages, policy violations included.
        width: the page's scroll width in CSS pixels.
        too_wide: elements that reach over the right edge, as tag and class.
        background: the body's background colour.
        pdf_bytes: size of the printed page.
    """

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    width: int = 0
    too_wide: list[str] = field(default_factory=list)
    background: str = ""
    pdf_bytes: int = 0


_TOO_WIDE = """[...document.querySelectorAll("body *")]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("svg"))
    .map(e => e.tagName + "." + e.className)"""


def visit(page: Path, width: int, *, dark: bool = False, screenshot: Path | None = None) -> Visit:
    """Opens a local page in a window of this width."""
    return asyncio.run(_visit(page, width, dark, screenshot))


async def _visit(page: Path, width: int, dark: bool, screenshot: Path | None) -> Visit:
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory() as profile:
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
        flags += ("--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={profile}")
        browser = await asyncio.create_subprocess_exec(
            CHROMIUM, *flags, "about:blank", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            return await asyncio.wait_for(_inspect(browser, page, width, dark, screenshot), 60)
        finally:
            browser.terminate()
            await browser.wait()


async def _inspect(
    browser: asyncio.subprocess.Process, page: Path, width: int, dark: bool, screenshot: Path | None
) -> Visit:
    assert browser.stderr is not None
    address = ""
    while not address:
        line = (await browser.stderr.readline()).decode()
        assert line, "the browser ended before it listened"
        address = line.partition("DevTools listening on ")[2].strip()
    origin = address.replace("ws://", "http://").partition("/devtools")[0]
    found = Visit()
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{origin}/json/list") as reply:
            target = next(t for t in await reply.json() if t["type"] == "page")
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            last = 0

            async def call(method: str, **parameters: Any) -> dict[str, Any]:
                nonlocal last
                last += 1
                await socket.send_json({"id": last, "method": method, "params": parameters})
                while True:
                    message = await socket.receive_json()
                    if message.get("id") == last:
                        assert "error" not in message, message
                        result: dict[str, Any] = message["result"]
                        return result
                    note(message)

            loaded = False

            def note(message: dict[str, Any]) -> None:
                nonlocal loaded
                method, parameters = message.get("method"), message.get("params", {})
                if method == "Network.requestWillBeSent":
                    found.requests.append(parameters["request"]["url"])
                elif method == "Log.entryAdded":
                    found.complaints.append(parameters["entry"]["text"])
                elif method == "Runtime.exceptionThrown":
                    found.complaints.append(parameters["exceptionDetails"]["text"])
                elif method == "Runtime.consoleAPICalled":
                    found.complaints.append(str(parameters["args"]))
                elif method == "Page.loadEventFired":
                    loaded = True

            async def evaluate(expression: str) -> Any:
                answer = await call("Runtime.evaluate", expression=expression, returnByValue=True)
                return answer["result"].get("value")

            for domain in ("Network", "Log", "Runtime", "Page"):
                await call(f"{domain}.enable")
            await call(
                "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            await call("Emulation.setEmulatedMedia", features=[scheme])
            await call("Page.navigate", url=page.resolve().as_uri())
            while not loaded:
                note(await socket.receive_json())
            await evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
            found.width = await evaluate("document.documentElement.scrollWidth")
            found.too_wide = await evaluate(_TOO_WIDE)
            found.background = await evaluate("getComputedStyle(document.body).backgroundColor")
            if screenshot is not None:
                shot = await call("Page.captureScreenshot", captureBeyondViewport=True)
                screenshot.write_bytes(base64.b64decode(shot["data"]))
            printed = await call("Page.printToPDF")
            found.pdf_bytes = len(base64.b64decode(printed["data"]))
    return found

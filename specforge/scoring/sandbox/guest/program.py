"""The untrusted side: runs a program, and answers calls into it for as long as the judge asks.

Nothing here is relied on for a verdict. A hostile program may replace all of it; the judge believes only plain values.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from .wire import Channel, Decoder, Encoder, WireError


class Exports:
    """The objects of the program that the judge knows by number."""

    def __init__(self) -> None:
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}

    def handle(self, value: Any) -> list[Any]:
        """The document of an object that stays here; the same object has the same number."""
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return ["handle", number]

    def resolve(self, document: list[Any]) -> Any:
        """The object of a handle."""
        return self._objects[document[1]]


class Callback:
    """A function of the judge's, passed to the program as an argument."""

    def __init__(self, server: ProgramServer, number: int) -> None:
        self._server = server
        self._number = number

    def __call__(self, *arguments: Any) -> Any:
        return self._server.call_back(self._number, arguments)


class ProgramServer:
    """Serves the judge: gives it the objects that it names, and does with them what it asks."""

    def __init__(self, channel: Channel, namespace: dict[str, Any]) -> None:
        self._channel = channel
        self._namespace = namespace
        self._exports = Exports()

    def serve(self) -> None:
        """Answers until the judge hangs up."""
        while True:
            self._answer(self._channel.receive())

    def call_back(self, number: int, arguments: tuple[Any, ...]) -> Any:
        """Calls a function of the judge's, serving whatever the judge asks meanwhile."""
        encoder = Encoder(self._exports.handle)
        self._channel.send({"callback": number, "arguments": [encoder.encode(argument) for argument in arguments]})
        while True:
            message = self._channel.receive()
            if "returned" in message:
                return Decoder(self._incoming).decode(message["returned"])
            if "raised" in message:
                raise RuntimeError(message["raised"])
            self._answer(message)

    def _incoming(self, document: list[Any]) -> Any:
        if document[0] == "handle" and len(document) > 2 and document[2] == "judge":
            return Callback(self, document[1])
        return self._exports.resolve(document)

    def _answer(self, message: dict[str, Any]) -> None:
        decoder = Decoder(self._incoming)
        arguments = [decoder.decode(document) for document in message["arguments"]]
        before = [_snapshot(container) for container in decoder.containers]
        try:
            result = self._perform(message["ask"], arguments, message.get("keywords", 0))
        except WireError:
            raise
        except BaseException as error:
            self._channel.send({"error": [kind.__name__ for kind in type(error).__mro__], "text": str(error)[:1000]})
            return
        encoder = Encoder(self._exports.handle, decoder.containers)
        document = encoder.encode(result)
        changed = [
            [number, encoder.contents(container)]
            for number, (container, old) in enumerate(zip(decoder.containers, before, strict=True))
            if _changed(container, old)
        ]
        self._channel.send({"result": document, "changed": changed})

    def _perform(self, ask: str, arguments: list[Any], keywords: int) -> Any:
        if ask == "name":
            return self._namespace[arguments[0]]
        subject, rest = arguments[0], arguments[1:]
        if ask == "call":
            plain = rest[: len(rest) - 2 * keywords]
            named = rest[len(plain) :]
            return subject(*plain, **dict(zip(named[::2], named[1::2], strict=True)))
        operations: dict[str, Callable[..., Any]] = {
            "getattr": getattr,
            "setattr": setattr,
            "getitem": lambda value, key: value[key],
            "len": len,
            "bool": bool,
            "str": str,
            "iter": iter,
            "next": next,
            "equal": lambda left, right: bool(left == right),
        }
        return operations[ask](subject, *rest)


def _snapshot(container: Any) -> Any:
    if isinstance(container, dict):
        return list(container.items())
    return bytes(container) if isinstance(container, bytearray) else list(container)


def _changed(container: Any, old: Any) -> bool:
    if isinstance(container, bytearray):
        return bool(container != old)
    if isinstance(container, dict):
        now = list(container.items())
        return len(now) != len(old) or any(
            key is not old_key or value is not old_value
            for (key, value), (old_key, old_value) in zip(now, old, strict=True)
        )
    now = list(container)
    return len(now) != len(old) or any(item is not was for item, was in zip(now, old, strict=True))


def _load(order: dict[str, Any], name: str) -> dict[str, Any]:
    module = ModuleType(name)
    sys.modules[name] = module
    # two pieces, so that the program may still begin with an import from __future__
    for source in (order["prelude"], order["source"]):
        exec(compile(source, "<program>", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def serve_calls(channel: Channel) -> NoReturn:
    """Loads the program that the judge sends, says how that went, and answers calls into it. Never returns."""
    try:
        order = channel.receive()
        try:
            namespace = _load(order, "solution")
        except BaseException as error:
            channel.send({"error": [kind.__name__ for kind in type(error).__mro__], "text": str(error)[:1000]})
        else:
            channel.send({"loaded": True})
            ProgramServer(channel, namespace).serve()
    finally:
        os._exit(0)


def run_script(channel: Channel) -> NoReturn:
    """Runs the program that the supervisor sends as a script over file descriptors 0, 1 and 2. Never returns.

    The exit status is 0 where the program ended by itself or by ``sys.exit(0)``, as for a bare interpreter.
    """
    status = 1
    try:
        order = channel.receive()
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
        sys.argv = ["program.py"]
        try:
            _load(order, "__main__")
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}"[:2000])
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        sys.stdout.flush()
    finally:
        os._exit(status & 0xFF)

"""How the judge and the program exchange values: JSON frames that can hold plain data and nothing that runs.

A value is encoded as itself where JSON has it, else as a list that starts with a tag. Only exact built-in types arrive
at the other side, built by the receiver: a class of the program's with an equality of its own can't cross. What can't
be written down (a generator, an instance, a function) crosses as a *handle*, a number that its owner understands.

Mutable arguments are numbered in the order in which both sides meet them, so that a reply can say that its result *is*
the second argument, and what became of the arguments that the function changed.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import json
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

MAX_FRAME = 64 << 20
"""Bytes of the largest frame; a longer one ends the conversation."""

_HEADER = struct.Struct(">I")
_SMALL = 1 << 53


class WireError(Exception):
    """The other side sent what the protocol does not have, or hung up."""


class Channel:
    """Frames over a stream socket, one JSON document each."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, document: object) -> None:
        """Sends one document.

        Raises:
            WireError: the document is too large, too deep, or nobody reads it any more.
        """
        try:
            body = json.dumps(document, separators=(",", ":")).encode("utf-8", "surrogatepass")
            if len(body) > MAX_FRAME:
                raise WireError(f"a value of {len(body)} bytes is too large")
            self._sock.sendall(_HEADER.pack(len(body)) + body)
        except (OSError, ValueError, RecursionError) as error:
            raise WireError(f"can't send: {error}") from error

    def receive(self) -> Any:
        """The next document.

        Raises:
            WireError: the other side hung up, or what came is no document of a permitted size.
        """
        (size,) = _HEADER.unpack(self._exactly(_HEADER.size))
        if size > MAX_FRAME:
            raise WireError(f"a frame of {size} bytes is too large")
        try:
            return json.loads(self._exactly(size).decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise WireError(f"not a document: {error}") from error

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self._sock.recv(min(size, 1 << 20))
            except OSError as error:
                raise WireError(f"can't receive: {error}") from error
            if not part:
                raise WireError("the other side hung up")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def write_frame(fd: int, body: bytes) -> None:
    """Writes one length-prefixed frame to a pipe, whole."""
    view = memoryview(_HEADER.pack(len(body)) + body)
    while view:
        view = view[os.write(fd, view) :]


def read_frame(read: Callable[[int], bytes]) -> bytes | None:
    """The next frame from ``read`` (which returns at most the bytes asked for); None at a clean or torn end."""

    def exactly(size: int) -> bytes | None:
        parts = []
        while size:
            part = read(min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    header = exactly(_HEADER.size)
    return None if header is None else exactly(_HEADER.unpack(header)[0])


_WRITTEN: dict[type, tuple[str, Callable[[Any], list[Any]]]] = {
    complex: ("complex", lambda v: [v.real, v.imag]),
    range: ("range", lambda v: [v.start, v.stop, v.step]),
    slice: ("slice", lambda v: [v.start, v.stop, v.step]),
    decimal.Decimal: ("Decimal", lambda v: [str(v)]),
    fractions.Fraction: ("Fraction", lambda v: [v.numerator, v.denominator]),
    datetime.date: ("date", lambda v: [v.year, v.month, v.day]),
    datetime.time: ("time", lambda v: [v.isoformat()]),
    datetime.datetime: ("datetime", lambda v: [v.isoformat()]),
    datetime.timedelta: ("timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    collections.Counter: ("Counter", lambda v: [dict(v)]),
    collections.OrderedDict: ("OrderedDict", lambda v: [list(v.items())]),
    collections.defaultdict: ("defaultdict", lambda v: [dict(v)]),
    collections.deque: ("deque", lambda v: [list(v), v.maxlen]),
    type({}.keys()): ("dict_keys", lambda v: [list(v)]),
    type({}.values()): ("dict_values", lambda v: [list(v)]),
    type({}.items()): ("dict_items", lambda v: [list(v)]),
}
"""Value types of the standard library, by exact class: a name, and what the value is rebuilt from."""

_BUILT: dict[str, Callable[..., Any]] = {
    "complex": complex,
    "range": range,
    "slice": slice,
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "date": datetime.date,
    "time": datetime.time.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "timedelta": datetime.timedelta,
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": lambda items: collections.defaultdict(None, items),
    "deque": collections.deque,
    "dict_keys": lambda keys: dict.fromkeys(keys).keys(),
    "dict_values": lambda values: dict(enumerate(values)).values(),
    "dict_items": lambda items: dict(items).items(),
}

_TYPES: dict[str, type] = {
    kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
}
"""Built-in types that cross as themselves: some tests pass one as an argument."""


class Encoder:
    """Turns values into JSON documents.

    Args:
        handle: the document of a value that can't be written down: ``["handle", number]`` of the owner's own table.
        known: mutable containers that both sides have already, in their common order.
    """

    def __init__(self, handle: Callable[[Any], list[Any]], known: list[Any] | None = None) -> None:
        self._handle = handle
        self.containers: list[Any] = list(known or ())
        self._numbers = {id(container): number for number, container in enumerate(self.containers)}

    def encode(self, value: Any) -> Any:
        """The document of ``value``; a subclass of a built-in type is written as that type's value."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if -_SMALL < value < _SMALL else ["int", hex(value)]
        if kind is float:
            return value
        if id(value) in self._numbers:
            return ["same", self._numbers[id(value)]]
        if isinstance(value, type) and _TYPES.get(value.__name__) is value:
            return ["type", value.__name__]
        if kind in _WRITTEN:
            name, parts = _WRITTEN[kind]
            return ["value", name, *[self.encode(part) for part in parts(value)]]
        return self._container(value, kind)

    def contents(self, container: Any) -> list[Any]:
        """The document of what a known container holds."""
        if isinstance(container, dict):
            return ["dict", *[self.encode(part) for pair in container.items() for part in pair]]
        if isinstance(container, bytearray):
            return ["bytearray", container.decode("latin-1")]
        return ["set" if isinstance(container, set) else "list", *[self.encode(item) for item in container]]

    def _container(self, value: Any, kind: type) -> Any:
        if isinstance(value, (list, dict, set, bytearray)):
            self._numbers[id(value)] = len(self.containers)
            self.containers.append(value)
            return self.contents(value)
        if isinstance(value, tuple):
            return ["tuple", *[self.encode(item) for item in tuple(value)]]
        if isinstance(value, frozenset):
            return ["frozenset", *[self.encode(item) for item in value]]
        if isinstance(value, bytes):
            return ["bytes", value.decode("latin-1")]
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return self.encode(int.__pos__(value))
        if isinstance(value, float):
            return float.__pos__(value)
        if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
            return self.encode(value.item())
        return self._handle(value)


class Decoder:
    """Turns JSON documents back into values, of exact built-in types alone.

    Args:
        handle: the value of ``["handle", number, ...]``.
        known: mutable containers that both sides have already, in their common order.
    """

    def __init__(self, handle: Callable[[list[Any]], Any], known: list[Any] | None = None) -> None:
        self._handle = handle
        self.containers: list[Any] = list(known or ())

    def decode(self, document: Any) -> Any:
        """The value of ``document``.

        Raises:
            WireError: no value has this document.
        """
        if not isinstance(document, list):
            if isinstance(document, dict):
                raise WireError("an object where a value was expected")
            return document
        try:
            return self._tagged(document)
        except (WireError, RecursionError, MemoryError):
            raise
        except Exception as error:
            raise WireError(f"not a value: {type(error).__name__}: {error}") from error

    def refill(self, container: Any, document: Any) -> None:
        """Makes a known container hold what ``document`` says.

        Raises:
            WireError: the document is not the contents of such a container.
        """
        tag, items = (document[0], document[1:]) if isinstance(document, list) and document else (None, [])
        if tag == "list" and isinstance(container, list):
            container[:] = [self.decode(item) for item in items]
        elif tag == "dict" and isinstance(container, dict):
            pairs = self._pairs(items)
            container.clear()
            container.update(pairs)
        elif tag == "set" and isinstance(container, set):
            values = {self.decode(item) for item in items}
            container.clear()
            container.update(values)
        elif tag == "bytearray" and isinstance(container, bytearray):
            container[:] = items[0].encode("latin-1")
        else:
            raise WireError(f"{tag!r} can't be the contents of a {type(container).__name__}")

    def _pairs(self, items: list[Any]) -> list[tuple[Any, Any]]:
        values = [self.decode(item) for item in items]
        return list(zip(values[::2], values[1::2], strict=True))

    def _tagged(self, document: list[Any]) -> Any:
        tag, items = document[0], document[1:]
        if tag in ("list", "dict", "set", "bytearray"):
            container: Any = {"list": list, "dict": dict, "set": set, "bytearray": bytearray}[tag]()
            self.containers.append(container)
            self.refill(container, document)
            return container
        if tag == "same":
            return self.containers[items[0]]
        if tag == "tuple":
            return tuple([self.decode(item) for item in items])
        if tag == "frozenset":
            return frozenset([self.decode(item) for item in items])
        if tag == "bytes":
            return items[0].encode("latin-1")
        if tag == "int":
            return int(items[0], 16)
        if tag == "value":
            return _BUILT[items[0]](*[self.decode(item) for item in items[1:]])
        if tag == "type":
            return _TYPES[items[0]]
        if tag == "handle":
            return self._handle(document)
        raise WireError(f"unknown tag {tag!r}")

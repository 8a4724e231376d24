"""Plain values cross the wire unchanged, and nothing else does."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import math
import socket
import struct
from typing import Any

import pytest

from specforge.scoring.sandbox.guest.wire import Channel, Decoder, Encoder, WireError


def refused(value: Any) -> list[Any]:
    raise TypeError(f"{type(value).__name__} has no document")


def crossed(value: Any) -> Any:
    document = json.loads(json.dumps(Encoder(refused).encode(value)))
    return Decoder(refused).decode(document)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1,
        2**53,
        -(2**200),
        0.1,
        -0.0,
        math.inf,
        "",
        "a\ud800b",
        b"\x00\xff",
        bytearray(b"x"),
        1 + 2j,
        [],
        [[1], (2, "3"), {4}],
        {"a": [1], 2: {(1, 2): None}},
        frozenset({1, (2, 3)}),
        ("tag", "list"),
        ["same", 0],
        ["int", "0x1"],
        range(1, 9, 2),
        decimal.Decimal("1.10"),
        fractions.Fraction(1, 3),
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=1, microseconds=3),
        collections.Counter("aab"),
        collections.OrderedDict([("b", 1), ("a", 2)]),
        collections.deque([1, 2], maxlen=3),
        int,
    ],
    ids=repr,
)
def test_a_plain_value_crosses_as_itself(value: Any) -> None:
    arrived = crossed(value)

    assert type(arrived) is type(value)
    assert arrived == value
    assert repr(arrived) == repr(value)


def test_not_a_number_crosses() -> None:
    assert math.isnan(crossed(math.nan))


class Colour(enum.IntEnum):
    RED = 1


class Agreeable(list):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize(
    "value, base",
    [
        (Colour.RED, 1),
        (Agreeable([1]), [1]),
        (collections.namedtuple("Pair", "x y")(1, 2), (1, 2)),
        (type("Text", (str,), {})("a"), "a"),
        (type("Real", (float,), {"__eq__": lambda *_: True})(0.5), 0.5),
    ],
)
def test_a_subclass_arrives_as_its_base(value: Any, base: Any) -> None:
    arrived = crossed(value)

    assert type(arrived) is type(base)
    assert arrived == base


def test_a_list_within_itself_crosses() -> None:
    value: list[Any] = [1]
    value.append(value)

    arrived = crossed(value)

    assert arrived[1] is arrived


def test_shared_lists_stay_shared() -> None:
    inner: list[int] = []

    arrived = crossed([inner, inner])

    assert arrived[0] is arrived[1]


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        ["unknown", 1],
        [["list"]],
        ["same", 5],
        ["same", "a"],
        ["int", 7],
        ["int"],
        ["bytes", None],
        ["dict", 1],
        ["dict", ["list"], 1],
        ["set", ["list"]],
        ["value", "eval", "1"],
        ["value", "Decimal", "x"],
        ["value", "Fraction", 1, 0],
        ["type", "object"],
    ],
)
def test_a_document_of_no_value_is_refused(document: Any) -> None:
    with pytest.raises(WireError):
        Decoder(refused).decode(document)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00\x00",
        struct.pack(">I", 2**32 - 1),
        struct.pack(">I", 3) + b"{,}",
        struct.pack(">I", 9) + b"1",
        struct.pack(">I", 200_000) + b"[" * 200_000,
    ],
)
def test_what_is_no_frame_is_refused(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(WireError):
            Channel(ours).receive()

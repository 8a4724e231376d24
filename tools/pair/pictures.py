"""The built-in rows of MMStar: tiny pictures drawn here, with a question about each."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

SIDE = 24
COLORS = {"red": (220, 40, 40), "green": (40, 160, 60), "blue": (40, 70, 220), "yellow": (240, 210, 40)}
WHITE = (255, 255, 255)
SHAPES: dict[str, Callable[[int, int], bool]] = {
    "square": lambda x, y: abs(x) < 8 and abs(y) < 8,
    "circle": lambda x, y: x * x + y * y < 81,
    "triangle": lambda x, y: -9 < y < 9 and 2 * abs(x) < y + 9,
    "cross": lambda x, y: min(abs(x), abs(y)) < 3 and max(abs(x), abs(y)) < 10,
}
LETTERS = "ABCD"


def png(pixel: Callable[[int, int], tuple[int, int, int]], side: int = SIDE) -> bytes:
    """A square RGB picture as a PNG file."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    lines = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(side)) for y in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines, 9)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def drawn(shape: str, color: str) -> bytes:
    """One shape of one color in the middle of a white picture."""
    covers, filled = SHAPES[shape], COLORS[color]
    return png(lambda x, y: filled if covers(x - SIDE // 2, y - SIDE // 2) else WHITE)


def rows(count: int) -> list[dict[str, Any]]:
    """``count`` rows in MMStar's columns: what shape is it, and what color has it."""
    random = Random("mmstar samples")
    pairs = [(shape, color) for shape in SHAPES for color in COLORS]
    found = []
    for index, (shape, color) in enumerate(random.sample(pairs, count)):
        asks_color = index % 2 == 0
        answer, options = (color, list(COLORS)) if asks_color else (shape, list(SHAPES))
        random.shuffle(options)
        listed = ", ".join(f"{letter}: {option}" for letter, option in zip(LETTERS, options, strict=True))
        asked = f"What color is the {shape}?" if asks_color else f"Which shape is {color} in the picture?"
        found.append(
            {
                "index": index,
                "question": f"{asked}\nOptions: {listed}",
                "image": {"bytes": base64.b64encode(drawn(shape, color)).decode(), "path": None},
                "answer": LETTERS[options.index(answer)],
                "category": "coarse perception" if asks_color else "fine-grained perception",
                "l2_category": "color" if asks_color else "shape",
                "meta_info": {"source": "drawn", "split": "sample", "image_path": f"{shape}-{color}.png"},
            }
        )
    return found

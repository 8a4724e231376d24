"""The instructions that several datasets share, each with where it is from; options and images as prompts hold them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specforge.errors import DatasetError

LETTERS = "ABCDEFGHIJ"

BOXED_INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
"""What Qwen2.5-Math's and DeepSeek-R1's model cards ask for, and so what most models were evaluated with."""

CHOICE_INSTRUCTION = (
    "Answer the following multiple choice question. The last line of your response should be of the following format: "
    "'Answer: $LETTER' (without quotes) where LETTER is one of {letters}. Think step by step before answering."
)
"""The multiple-choice template of OpenAI's simple-evals, used for MMLU and GPQA."""


def boxed(problem: str) -> str:
    """A mathematical problem, asked for a boxed answer."""
    return f"{problem.strip()}\n\n{BOXED_INSTRUCTION}"


def choice_prompt(question: str, options: Sequence[str]) -> str:
    """A multiple-choice question with options ``A) ...``, asked for a last line ``Answer: X``."""
    letters = LETTERS[: len(options)]
    listed = "\n".join(f"{letter}) {option.strip()}" for letter, option in zip(letters, options, strict=True))
    return f"{CHOICE_INSTRUCTION.format(letters=letters)}\n\n{question.strip()}\n\n{listed}"


def letter_of(value: Any, count: int) -> str:
    """The reference letter: from a letter, or from the option's number, 0 for A.

    Raises:
        DatasetError: it names no option. A reference outside the options is the dataset's fault, never a wrong answer.
    """
    letters = LETTERS[:count]
    text = str(value).strip().upper()
    if text in tuple(letters):
        return text
    if text.isdecimal() and int(text) < count:
        return letters[int(text)]
    raise DatasetError(f"the reference {value!r} is none of the {count} options")


def image_part(value: Any) -> dict[str, Any]:
    """An image column as a content part with a data URL.

    Args:
        value: ``{"bytes": raw bytes or base64, "path": ...}`` as the Hub's Parquet has it, a data URL, base64, a path.

    Raises:
        DatasetError: it is none of these, or no image format that chat servers take.
    """
    if isinstance(value, str) and value.startswith("data:image/"):
        return {"type": "image_url", "image_url": {"url": value}}
    raw = _image_bytes(value)
    kind = _image_kind(raw)
    url = f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _image_bytes(value: Any) -> bytes:
    if isinstance(value, Mapping):
        value = value.get("bytes") if value.get("bytes") is not None else value.get("path")
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            if Path(value).is_file():
                return Path(value).read_bytes()
    raise DatasetError("the image is neither bytes, base64, a data URL nor a file that is there")


def _image_kind(raw: bytes) -> str:
    for magic, kind in ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif")):
        if raw.startswith(magic):
            return kind
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "webp"
    raise DatasetError(f"unknown image format, it starts with {raw[:4]!r}; expected PNG, JPEG, GIF or WebP")

"""The fenced blocks of a Markdown file, and the commands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#\s.*")
_NAMED_FILE = re.compile(r"`(?P<path>[\w./-]+\.\w+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: what stands behind the opening fence.
        text: its lines.
        named_file: the last file that the paragraph right before it names in backticks; empty for none.
        place: file and line, for messages.
    """

    language: str
    text: str
    named_file: str
    place: str

    @property
    def commands(self) -> list[str]:
        """The shell commands of a ``bash`` or ``console`` block, continued lines joined, comments left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        elif self.language != "bash":
            return []
        return [line for line in (_COMMENT.sub("", line).strip() for line in lines) if line]


def blocks(path: Path) -> Iterator[Block]:
    """All fenced blocks of a file, in order."""
    text = path.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        paragraph = text[: found.start()].rstrip().rpartition("\n\n")[2]
        files = _NAMED_FILE.findall(paragraph) if not paragraph.endswith("```") else []
        line = text.count("\n", 0, found.start()) + 1
        yield Block(found["language"], found["text"], files[-1] if files else "", f"{path.name}:{line}")

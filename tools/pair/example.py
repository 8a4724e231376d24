"""What a family makes: a row in the Hub's columns, and the reply that a good answer to it would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    """One generated row with its answer.

    Attributes:
        dataset: the harness's name of the dataset whose columns ``row`` has; ``chat`` for plain conversation.
        row: the row as the Hub would serve it (for ``chat``: ``prompt``, the list of the user's turns).
        working: the text that leads to the answer, one string a turn; for code, the program itself.
        answer: the final answer alone, in the form of the dataset's reference; empty where there is none.
    """

    dataset: str
    row: Mapping[str, Any]
    working: tuple[str, ...]
    answer: str = ""

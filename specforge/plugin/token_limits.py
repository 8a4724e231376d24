"""``--max-new-tokens``: one limit for every benchmark, or limits for single ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specforge.datasets import find
from specforge.errors import UsageError

_FLAG = "--max-new-tokens"


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """Token limits of answers.

    Attributes:
        every: for the benchmarks that ``named`` does not have; None for each dataset's own.
        named: by dataset.
    """

    every: int | None = None
    named: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> TokenLimits:
        """Reads ``N``, ``NAME=N``, or several of them with commas between.

        Raises:
            UsageError: a limit is no positive integer, a dataset is unknown, or there are two limits for one thing.
        """
        every: int | None = None
        named: dict[str, int] = {}
        for part in text.split(",") if text is not None else ():
            name, equals, number = (piece.strip() for piece in part.rpartition("="))
            if not number.isdecimal() or int(number) < 1:
                raise UsageError(f"{_FLAG}: {part.strip()} is not at least 1; expected N, or NAME=N,...")
            if equals:
                name = find(name, _FLAG).name
            if name in named or (not equals and every is not None):
                raise UsageError(f"{_FLAG}: {text!r} has two limits for {name or 'every benchmark'}")
            if equals:
                named[name] = int(number)
            else:
                every = int(number)
        return cls(every, named)

    def of(self, dataset: str, default: int) -> int:
        """The limit of a dataset whose own is ``default``."""
        return self.named.get(dataset, self.every or default)

    def __str__(self) -> str:
        """As :meth:`parse` reads it again; empty where nothing is limited."""
        every = [] if self.every is None else [str(self.every)]
        return ",".join([*every, *(f"{name}={limit}" for name, limit in sorted(self.named.items()))])

"""What a person sees while a cell is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TextIO

from tqdm import tqdm


class Progress(Protocol):
    """Told how a cell goes; called inside the window, so it must be quick."""

    def advance(self, output_tokens: int, verify_steps: int | None) -> None:
        """One prompt has ended."""
        ...

    def restart(self, done: int) -> None:
        """A round begins anew; ``done`` prompts of other rounds count."""
        ...

    def scored(self, accuracy: float | None) -> None:
        """The answers have been scored."""
        ...

    def close(self) -> None:
        """The cell is over."""
        ...


class Silent:
    """For logs, for ``-q``, and for workers: nothing is shown."""

    def advance(self, output_tokens: int, verify_steps: int | None) -> None:
        """Shows nothing."""

    def restart(self, done: int) -> None:
        """Shows nothing."""

    def scored(self, accuracy: float | None) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Shows nothing."""


class Bar:
    """A progress bar with running throughput and acceptance length, and the accuracy once it is known.

    Args:
        label: what is being measured.
        total: prompts times rounds.
        file: the terminal.
        clock: tells the time, s.
    """

    def __init__(self, label: str, total: int, file: TextIO, clock: Callable[[], float] = time.perf_counter) -> None:
        self._bar = tqdm(
            total=total, desc=label, unit="req", file=file, leave=False, dynamic_ncols=True, mininterval=0.25
        )
        self._clock = clock
        self._since: float | None = None
        self._tokens = self._accepted = self._steps = 0
        self._accuracy: float | None = None

    def advance(self, output_tokens: int, verify_steps: int | None) -> None:
        """Counts the prompt; the terminal is written at most four times a second."""
        if self._since is None:
            # The clock runs from the first answer, as the bar is there before the warm-up is.
            self._since = self._clock()
        else:
            self._tokens += output_tokens
        if verify_steps:
            self._steps += verify_steps
            self._accepted += output_tokens
        if self._bar.update():
            self._bar.set_postfix_str(self._text(), refresh=False)

    def restart(self, done: int) -> None:
        """Goes back to the beginning of the round."""
        self._since, self._tokens, self._accepted, self._steps = None, 0, 0, 0
        self._bar.reset()
        self._bar.update(done)

    def scored(self, accuracy: float | None) -> None:
        """Shows the accuracy."""
        self._accuracy = accuracy
        self._bar.set_postfix_str(self._text())

    def close(self) -> None:
        """Takes the bar off the terminal."""
        self._bar.close()

    def _text(self) -> str:
        elapsed = 0.0 if self._since is None else self._clock() - self._since
        parts = [f"{self._tokens / elapsed:.0f} tok/s"] if elapsed else []
        if self._steps:
            parts.append(f"accept {self._accepted / self._steps:.2f}")
        if self._accuracy is not None:
            parts.append(f"acc {self._accuracy:.1%}")
        return ", ".join(parts)

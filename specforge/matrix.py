"""The two axes of the matrix: speculative configurations and benchmark specs. Parsing and ids, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from specforge.errors import UsageError

DEFAULT_CONFIGS = ("1,0,0,0", "1,3,1,4")
DEFAULT_BENCHMARKS = ("mtbench:80", "gsm8k:200", "humaneval:200", "math500:200", "ceval:200")

_NUMBER = re.compile(r"[0-9]+\Z")


def tree_capacity(num_steps: int, topk: int) -> int:
    """How many draft nodes an EAGLE tree can hold: topk in its first level, topk² in each later one."""
    return topk + (num_steps - 1) * topk * topk


@dataclass(frozen=True, slots=True, order=True)
class SpecConfig:
    """One speculative configuration; its text form ``batch-size,num-steps,topk,num-draft-tokens`` is its test id.

    Attributes:
        batch_size: requests in flight at once, at least 1.
        num_steps: draft steps before each verification; 0 for target-only and for algorithms without steps.
        topk: branches kept at each draft step (``--speculative-eagle-topk``).
        num_draft_tokens: tokens verified at once, the root included (``--speculative-num-draft-tokens``).
    """

    batch_size: int
    num_steps: int
    topk: int
    num_draft_tokens: int

    @classmethod
    def parse(cls, text: str) -> SpecConfig:
        """Reads ``b,steps,topk,D``; with topk = 1, D becomes steps + 1, as SGLang's server would have it.

        Raises:
            UsageError: it is not four non-negative integers, or they don't describe a tree that a server can run.
        """
        fields = [field.strip() for field in text.split(",")]
        if len(fields) != 4 or not all(_NUMBER.match(field) for field in fields):
            raise UsageError(
                f"--config-list: {text!r} is not a configuration; expected four non-negative integers "
                "batch-size,num-steps,topk,num-draft-tokens, such as 1,3,1,4 or 1,0,0,0"
            )
        batch_size, num_steps, topk, num_draft_tokens = (int(field) for field in fields)
        if num_steps and topk == 1:
            num_draft_tokens = num_steps + 1
        config = cls(batch_size, num_steps, topk, num_draft_tokens)
        config._check(text)
        return config

    def _check(self, text: str) -> None:
        def reject(why: str) -> UsageError:
            return UsageError(f"--config-list: {text!r}: {why}")

        if self.batch_size < 1:
            raise reject("the batch size must be at least 1")
        if not self.num_steps:
            if self.topk:
                raise reject("topk without steps; give 0 for both, or at least one step")
            return
        if not self.topk:
            raise reject("steps need a topk of at least 1")
        if self.num_draft_tokens < 2:
            raise reject("num-draft-tokens counts the root, so it must be at least 2")
        capacity = tree_capacity(self.num_steps, self.topk)
        if self.num_draft_tokens - 1 > capacity:
            raise reject(
                f"{self.num_draft_tokens} draft tokens are more than this tree holds: at most "
                f"topk + (steps - 1) * topk**2 + 1 = {capacity + 1}"
            )

    @property
    def is_target_only(self) -> bool:
        """Whether nothing is drafted: the baseline that speedup and losslessness refer to."""
        return not self.num_steps and not self.num_draft_tokens

    @property
    def baseline(self) -> SpecConfig:
        """The target-only configuration of the same batch size."""
        return SpecConfig(self.batch_size, 0, 0, 0)

    def __str__(self) -> str:
        return f"{self.batch_size},{self.num_steps},{self.topk},{self.num_draft_tokens}"


@dataclass(frozen=True, slots=True)
class BenchmarkSpec:
    """Which dataset, how many prompts of it, from which subsets: ``name[:num-prompts[:subset,...]]``.

    Attributes:
        name: the dataset as it stands on the command line, in lower case.
        num_prompts: prompts to draw; None for the dataset's whole size.
        subsets: names as the dataset knows them, in the order given; empty for all.
    """

    name: str
    num_prompts: int | None = None
    subsets: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, flag: str = "--benchmark-list") -> BenchmarkSpec:
        """Reads the text form, given by ``flag``. Whether the dataset and its subsets exist is the registry's to say.

        Raises:
            UsageError: the text has another shape.
        """
        name, _, rest = text.partition(":")
        count, _, subsets = rest.partition(":")
        name = name.strip().lower()
        if not re.match(r"[a-z0-9][a-z0-9_.-]*\Z", name):
            raise UsageError(
                f"{flag}: {text!r} is not a benchmark; expected name[:num-prompts[:subset,...]], "
                "such as gsm8k:5 or ceval:5:accountant"
            )
        if count and (not _NUMBER.match(count) or int(count) < 1):
            raise UsageError(f"{flag}: {text!r}: the number of prompts is {count!r}; expected a positive integer")
        names = tuple(dict.fromkeys(part.strip() for part in subsets.split(","))) if subsets else ()
        if any(not part for part in names):
            raise UsageError(f"{flag}: {text!r}: empty subset name")
        return cls(name, int(count) if count else None, names)

    def __str__(self) -> str:
        parts = [self.name]
        if self.num_prompts is not None or self.subsets:
            parts.append("" if self.num_prompts is None else str(self.num_prompts))
        if self.subsets:
            parts.append(",".join(self.subsets))
        return ":".join(parts)


def parse_configs(texts: Iterable[str]) -> list[SpecConfig]:
    """Reads a list of configurations; one that comes twice (also after normalising) is kept once."""
    return list(dict.fromkeys(SpecConfig.parse(text) for text in texts))


def parse_benchmarks(texts: Iterable[str]) -> list[BenchmarkSpec]:
    """Reads a list of benchmark specs; one that comes twice is kept once."""
    return list(dict.fromkeys(BenchmarkSpec.parse(text) for text in texts))

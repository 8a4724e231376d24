"""Sampling parameters with SGLang's names, defaults and limits, and the choice of a token."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from specforge.engine.kernels import Array
from specforge.errors import RequestError

_GREEDY_BELOW = 1e-6
_MOST_STOPS = 32
_CONSTRAINTS = ("json_schema", "regex", "ebnf", "structural_tag", "stop_regex", "beam_width", "watermark")
"""Parameters that SGLang knows and this engine does not honour; refused unless null."""

_IGNORED = ("spaces_between_special_tokens", "stream_interval", "custom_params")
"""Parameters without a meaning here; accepted, as no answer of SGLang's depends on them for these models."""


@dataclass(frozen=True)
class SamplingParams:
    """The `sampling_params` of a request, checked."""

    max_new_tokens: int | None = 128
    """None: as many as the context leaves."""
    min_new_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    n: int = 1
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    no_stop_trim: bool = False
    sampling_seed: int | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()

    @property
    def greedy(self) -> bool:
        """Whether the token of the highest probability is always taken."""
        return self.temperature < _GREEDY_BELOW or self.top_k == 1

    @property
    def counts_outputs(self) -> bool:
        """Whether a penalty depends on what was generated."""
        return bool(self.frequency_penalty or self.presence_penalty or self.repetition_penalty != 1.0)

    @property
    def plain(self) -> bool:
        """Whether a token is the argmax of the logits as they are: greedy, with nothing that changes them."""
        return self.greedy and not (self.counts_outputs or self.logit_bias or self.min_new_tokens)

    def for_copy(self, copy: int) -> "SamplingParams":
        """The parameters of one of the `n` answers: a given seed differs from one to the next."""
        return self if self.sampling_seed is None else replace(self, sampling_seed=self.sampling_seed + copy)

    @classmethod
    def parse(cls, given: Mapping[str, Any], vocabulary: int) -> "SamplingParams":
        """Read a request's parameters. Raises RequestError with SGLang's reason for one that is unknown or absurd."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name in _CONSTRAINTS:
                if value:
                    raise RequestError(f"{name} is not supported by the embedded engine.")
            elif name not in known and name not in _IGNORED:
                raise RequestError(f"unknown field `{name}`, expected one of {', '.join(sorted(known))}")
            elif name in known and (value is not None or name == "max_new_tokens"):
                values[name] = _typed(name, value)
        params = cls(**values)
        params._check(vocabulary)
        return params

    def _check(self, vocabulary: int) -> None:
        limits = (
            (
                math.isfinite(self.temperature) and self.temperature >= 0,
                f"temperature must be a non-negative finite number, got {self.temperature}.",
            ),
            (0.0 < self.top_p <= 1.0, f"top_p must be in (0, 1], got {self.top_p}."),
            (0.0 <= self.min_p <= 1.0, f"min_p must be in [0, 1], got {self.min_p}."),
            (
                self.greedy or self.top_k == -1 or self.top_k >= 1,
                f"top_k must be -1 (disable) or at least 1, got {self.top_k}.",
            ),
            (
                -2.0 <= self.frequency_penalty <= 2.0,
                f"frequency_penalty must be in [-2, 2], got {self.frequency_penalty}.",
            ),
            (
                -2.0 <= self.presence_penalty <= 2.0,
                f"presence_penalty must be in [-2, 2], got {self.presence_penalty}.",
            ),
            (
                0.0 < self.repetition_penalty <= 2.0,
                f"repetition_penalty must be in (0, 2] (1.0 = no penalty), got {self.repetition_penalty}.",
            ),
            (
                self.min_new_tokens >= 0,
                f"min_new_tokens must be in [0, max_new_tokens], got {self.min_new_tokens}.",
            ),
            (
                self.max_new_tokens is None or self.max_new_tokens >= 0,
                f"max_new_tokens must be at least 0, got {self.max_new_tokens}.",
            ),
            (
                self.max_new_tokens is None or self.min_new_tokens <= self.max_new_tokens,
                f"min_new_tokens must be in [0, max_new_tokens({self.max_new_tokens})], got {self.min_new_tokens}.",
            ),
            (1 <= self.n <= 128, f"n must be in [1, 128], got {self.n}."),
            (
                len(self.stop) <= _MOST_STOPS,
                f"at most {_MOST_STOPS} stop strings are allowed, got {len(self.stop)}",
            ),
            (
                self.sampling_seed is None or -(2**63) <= self.sampling_seed < 2**63,
                f"sampling_seed must be in [-2**63, 2**63 - 1], got {self.sampling_seed}.",
            ),
        )
        for holds, reason in limits:
            if not holds:
                raise RequestError(reason)
        for token, _ in self.logit_bias:
            if not 0 <= token < vocabulary:
                raise RequestError(f"logit_bias must have keys in [0, {vocabulary - 1}], got {token}.")


_NUMBERS = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
_FLAGS = ("ignore_eos", "skip_special_tokens", "no_stop_trim")


def _typed(name: str, value: Any) -> Any:
    """A value as its field has it. Raises RequestError for another type."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if name in _NUMBERS:
        if number:
            return value
    elif name in _FLAGS:
        if isinstance(value, bool):
            return value
    elif name == "stop":
        strings = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else (None,)
        if all(isinstance(string, str) for string in strings):
            return tuple(string for string in strings if string)
    elif name == "stop_token_ids":
        if isinstance(value, list) and all(isinstance(token, int) for token in value):
            return tuple(value)
    elif name == "logit_bias":
        try:
            return tuple((int(token), float(bias)) for token, bias in value.items())
        except (AttributeError, TypeError, ValueError):
            pass
    elif value is None or whole:
        return value
    raise RequestError(f"invalid type: {name} is {value!r}")


@dataclass(frozen=True)
class Draw:
    """All that a choice depends on besides the logits."""

    params: SamplingParams
    seed: int
    index: int
    """How many tokens the answer has before this one."""
    prompt: Sequence[int]
    counts: Counter[int]
    """Tokens generated before this one; filled only where a penalty needs them."""
    eos: frozenset[int]


def choose(logits: Array, draw: Draw) -> int:
    """The next token from its logits [vocabulary].

    The random number depends on the seed and the token's index alone. So a request with a seed gets the same answer
    with and without speculation, in any batch, as far as the logits are the same.
    """
    params = draw.params
    if not params.plain:
        logits = _adjusted(logits, draw)
    if params.greedy:
        return int(logits.argmax())
    order = np.argsort(-logits, kind="stable")
    scaled = logits[order].astype(np.float64) / params.temperature
    likely = np.exp(scaled - scaled[0])
    likely /= likely.sum()
    kept = _kept(likely, params)
    edges = np.cumsum(likely[:kept])
    # Philox is counter-based: any element of its stream costs the same.
    uniform = np.random.Generator(np.random.Philox(key=[draw.seed % 2**64, draw.index])).random()
    return int(order[min(int(np.searchsorted(edges, uniform * edges[-1], side="right")), kept - 1)])


def _kept(likely: npt.NDArray[np.float64], params: SamplingParams) -> int:
    """How many of the probabilities, largest first, top-k, top-p and min-p leave; at least one."""
    kept = len(likely) if params.top_k == -1 else min(params.top_k, len(likely))
    if params.top_p < 1.0:
        before = np.cumsum(likely) - likely
        kept = min(kept, int((before <= params.top_p).sum()))
    if params.min_p > 0.0:
        kept = min(kept, int((likely >= likely[0] * params.min_p).sum()))
    return max(kept, 1)


def _adjusted(logits: Array, draw: Draw) -> Array:
    """Logits after penalties, bias and the minimum length."""
    params, logits = draw.params, logits.copy()
    if params.repetition_penalty != 1.0:
        seen = np.array(sorted(draw.counts.keys() | set(draw.prompt)))
        values = logits[seen]
        logits[seen] = np.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
    for token, count in draw.counts.items():
        logits[token] -= params.frequency_penalty * count + params.presence_penalty
    for token, bias in params.logit_bias:
        logits[token] += bias
    if draw.index < params.min_new_tokens:
        logits[sorted(draw.eos)] = -np.inf
    return logits

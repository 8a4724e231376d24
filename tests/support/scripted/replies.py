"""What is answered to a prompt: a pure function of the script and the prompt, counts and all."""

from __future__ import annotations

import hashlib
import random
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.scripted.script import Replies, Speculation

END_TOKEN = 2
_FIRST_TOKEN, _TOKENS = 3, 50_000
_PIECE = re.compile(r"\s*\S+|\s+")
_WORDS = ("we", "so", "then", "add", "take", "the", "sum", "of", "each", "apple", "pear", "share", "gives", "left")


def pieces(text: str) -> list[str]:
    """A text cut into tokens: words, each with the whitespace before it."""
    return _PIECE.findall(text)


def token_id(piece: str) -> int:
    """The id of a token; distinct pieces may share one, as nobody decodes them."""
    return _FIRST_TOKEN + zlib.crc32(piece.encode()) % _TOKENS


def token_ids(text: str) -> list[int]:
    """A text as token ids."""
    return [token_id(piece) for piece in pieces(text)]


@dataclass(frozen=True)
class Verification:
    """How speculation went: for each verification step, the drafts it accepted."""

    accepted: tuple[int, ...]
    proposed_per_step: int

    @property
    def steps(self) -> int:
        return len(self.accepted)

    @property
    def correct(self) -> int:
        return sum(self.accepted)

    @property
    def proposed(self) -> int:
        return self.steps * self.proposed_per_step

    @property
    def histogram(self) -> list[int]:
        """Steps by the number of drafts they accepted, up to the largest that occurred, as SGLang cuts it."""
        return [self.accepted.count(count) for count in range(max(self.accepted) + 1)]


@dataclass(frozen=True)
class Reply:
    """An answer: its tokens as text and ids (the end token has an id, no text), and how it was verified.

    ``bursts`` says how many tokens each decoding step added, prefill's first token among them: what a stream's
    chunks hold.
    """

    pieces: tuple[str, ...]
    output_ids: tuple[int, ...]
    reasoning_pieces: int
    finished: bool
    verification: Verification | None
    bursts: tuple[int, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def reply_to(
    prompt: str,
    *,
    max_tokens: int,
    replies: Replies,
    speculation: Speculation | None,
    ignore_end: bool = False,
    sample: int = 0,
) -> Reply:
    """The answer to a rendered prompt, at most ``max_tokens`` long (exactly, with ``ignore_end``).

    ``sample`` tells apart the answers to one prompt (``n`` above 1). Text and token ids do not depend on
    ``speculation``, but for the script's drifts.
    """
    if replies.alike:
        prompt = ""
    digest = hashlib.blake2b(f"{replies.seed}:{sample}:{prompt}".encode(), digest_size=8).digest()
    said, reasoning = _said(prompt, replies, random.Random(digest + b"text"))
    ids = [token_id(piece) for piece in said]
    if ignore_end:
        cycle = said or [" so"]
        said = [cycle[at % len(cycle)] for at in range(max_tokens)]
        ids = [token_id(piece) for piece in said]
    else:
        ids.append(END_TOKEN)
    finished = not ignore_end and len(ids) <= max_tokens
    ids, said = ids[:max_tokens], said[:max_tokens]
    if speculation is not None:
        _drift(prompt, replies, said, ids)
    chance = random.Random(digest + b"verify")
    verified = speculation is not None and chance.random() >= replies.unverified_share
    verification = _verify(len(ids) - 1, replies.acceptance, speculation, chance) if verified and speculation else None
    return Reply(
        pieces=tuple(said),
        output_ids=tuple(ids),
        reasoning_pieces=min(reasoning, len(said)),
        finished=finished,
        verification=verification,
        bursts=_bursts(len(ids), verification),
    )


def _said(prompt: str, replies: Replies, chance: random.Random) -> tuple[list[str], int]:
    """The pieces of the answer, without the end token, and how many of them are reasoning."""
    for answer in replies.answers:
        if answer.containing in prompt:
            reasoning = pieces(answer.reasoning)
            return reasoning + pieces(answer.text), len(reasoning)
    length = max(chance.randint(*replies.tokens) - 1, 0)
    words = [" " + chance.choice(_WORDS) for _ in range(length)]
    if words:
        words[-1] = f" {chance.randint(0, 99)}"
    return words, 0


def _drift(prompt: str, replies: Replies, said: list[str], ids: list[int]) -> None:
    for drift in replies.drifts:
        if drift.containing in prompt:
            for at in range(drift.position, len(said)):
                said[at] += "~"
                ids[at] = token_id(said[at])


def _verify(tokens: int, acceptance: float, speculation: Speculation, chance: random.Random) -> Verification | None:
    """Steps until ``tokens`` have been committed; none, and no fields, for a one-token answer.

    The last step may accept more drafts than fit, which SGLang counts all the same.
    """
    likely = min(max(acceptance + chance.uniform(-0.2, 0.2), 0.0), 1.0)
    accepted: list[int] = []
    committed = 0
    while committed < tokens:
        drafts = 0
        while drafts < speculation.most_accepted and chance.random() < likely:
            drafts += 1
        accepted.append(drafts)
        committed += drafts + 1
    if not accepted:
        return None
    return Verification(tuple(accepted), speculation.num_draft_tokens - 1)


def _bursts(tokens: int, verification: Verification | None) -> tuple[int, ...]:
    steps: Sequence[int] = [1] * tokens
    if verification is not None:
        steps = [1, *(drafts + 1 for drafts in verification.accepted)]
    bursts: list[int] = []
    left = tokens
    for burst in steps:
        if left > 0:
            bursts.append(min(burst, left))
            left -= burst
    return tuple(bursts)

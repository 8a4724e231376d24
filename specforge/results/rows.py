"""The rows file of a cell: one JSON line for a prompt in a round, written as it lands.

A line holds ``row_id, index, round, attempt, status, error, retries, clamped, category, messages, followups, turns``
and, once the cell is scored, ``score``. ``turns`` has one object an answered turn: ``text, reasoning, finish_reason,
output_ids, prompt_tokens, output_tokens, cached_tokens, verify_steps, correct_drafts, proposed_drafts, histogram,
latency, ttft`` (s), and the readings of one clock (s) that a round's window follows from: ``sent_at``,
``first_token_at`` (null unless streamed), ``ended_at``; ``server_latency`` is the server's own.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from specforge.datasets.model import Message
from specforge.errors import OutputError, RecordError

if TYPE_CHECKING:  # comparing and reporting read rows, and need no HTTP client for it
    from specforge.client.reply import Reply
    from specforge.load.conversation import Outcome

Row = dict[str, Any]
_BLOCK = 2**20  # bytes read at a time


def reply_fields(reply: Reply) -> dict[str, Any]:
    """One turn of a row."""
    spec = reply.spec
    ttft = reply.server_ttft if reply.first_token_at is None else reply.first_token_at - reply.sent_at
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "finish_reason": reply.finish_reason,
        "output_ids": reply.output_ids,
        "prompt_tokens": reply.prompt_tokens,
        "output_tokens": reply.completion_tokens,
        "cached_tokens": reply.cached_tokens,
        "verify_steps": None if spec is None else spec.verify_steps,
        "correct_drafts": None if spec is None else spec.correct_drafts,
        "proposed_drafts": None if spec is None else spec.proposed_drafts,
        "histogram": None if spec is None else spec.histogram,
        "latency": reply.latency,
        "ttft": ttft,
        "sent_at": reply.sent_at,
        "first_token_at": reply.first_token_at,
        "ended_at": reply.ended_at,
        "server_latency": reply.server_latency,
    }


class RowWriter:
    """Appends rows to a file; each is one write of one whole line, so that a crash loses none that landed.

    Raises:
        OutputError: the file can't be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise OutputError.of(path, error) from None
        # By identity, since a prompt that is asked several times shares its messages; they are kept, so none is reused.
        self._static: dict[int, tuple[tuple[Message, ...], orjson.Fragment]] = {}

    def write(self, outcome: Outcome, attempt: int) -> None:
        """Writes one prompt's row."""
        prompt = outcome.prepared.prompt
        kept = self._static.get(id(prompt.messages))
        if kept is None:
            fragment = orjson.Fragment(orjson.dumps([without_images(message) for message in prompt.messages]))
            kept = self._static[id(prompt.messages)] = prompt.messages, fragment
        row = {
            "row_id": prompt.row_id,
            "index": prompt.index,
            "round": outcome.round_index,
            "attempt": attempt,
            "status": outcome.status,
            "error": outcome.error,
            "retries": outcome.retries,
            "clamped": outcome.clamped,
            "category": prompt.category,
            "messages": kept[1],
            "followups": prompt.followups,
            "turns": [reply_fields(reply) for reply in outcome.replies],
        }
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # the rest of the line did not fit
        except OSError as error:
            raise OutputError.of(self.path, error) from None

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def without_images(message: Message) -> dict[str, Any]:
    """A message with each image replaced by the hash of its address, which stays small."""
    content = message["content"]
    if isinstance(content, str):
        return dict(message)
    parts = []
    for part in content:
        if part.get("type") == "image_url":
            digest = hashlib.sha256(str(part["image_url"]["url"]).encode()).hexdigest()[:16]
            part = {"type": "image_url", "sha256": digest}
        parts.append(part)
    return {**message, "content": parts}


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, one at a time.

    Raises:
        RecordError: the file can't be read, or a line is no row (the last one may have been cut by a crash).
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise RecordError(f"{path}:{number}: not a whole line of JSON") from error
                if not isinstance(row, dict) or "row_id" not in row:
                    raise RecordError(f"{path}:{number}: not a row of a benchmark (no row_id)")
                yield row
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error


def drop_cut_line(path: Path) -> bool:
    """Cuts off a last line that was not written to its end; whether there was one."""
    with path.open("rb+") as file:
        end = kept = file.seek(0, os.SEEK_END)
        while kept:
            start = max(0, kept - _BLOCK)
            file.seek(start)
            newline = file.read(kept - start).rfind(b"\n")
            if newline >= 0:
                kept = start + newline + 1
                break
            kept = start
        file.truncate(kept)
    return kept < end


def rewrite(path: Path, change: Callable[[Row], Row | None]) -> None:
    """Replaces a rows file by what ``change`` makes of each row (None drops it), atomically."""
    replacement = path.with_name(path.name + ".new")
    with replacement.open("wb") as file:
        for row in read_rows(path):
            changed = change(row)
            if changed is not None:
                file.write(orjson.dumps(changed, option=orjson.OPT_APPEND_NEWLINE))
        file.flush()
        os.fsync(file.fileno())
    replacement.replace(path)


def sha256_of(path: Path) -> str:
    """The file's hash, hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()

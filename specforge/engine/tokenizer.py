"""Text to tokens and back, and the model's own chat template."""

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox
import tokenizers

from specforge.engine.folder import read_json
from specforge.errors import RequestError, UsageError

_UNFINISHED = "\ufffd"
"""What a byte-level decoder puts for a character whose bytes are not all there yet."""


class Tokenizer:
    """A folder's `tokenizer.json`, with the template and the special tokens beside it."""

    def __init__(self, folder: Path, flag: str) -> None:
        """Raises UsageError, naming `flag`, where the folder has no usable tokenizer."""
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise UsageError(f"{flag}: expected tokenizer.json in {folder}, found none")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises Exception itself
            raise UsageError(f"{flag}: {file} is no tokenizer ({error})") from error
        config = folder / "tokenizer_config.json"
        self._settings = read_json(config) if config.is_file() else {}
        self._special = {
            name: token.get("content", "") if isinstance(token, dict) else token
            for name, token in self._settings.items()
            if name in ("bos_token", "eos_token", "pad_token", "unk_token") and token is not None
        }
        self._template = _compiled(folder, self._settings, flag)

    @property
    def vocabulary(self) -> int:
        """Number of tokens, added ones included."""
        return int(self._tokenizer.get_vocab_size())

    @property
    def eos(self) -> tuple[int, ...]:
        """The id of `eos_token`, if it names one."""
        found = self._tokenizer.token_to_id(self._special.get("eos_token", ""))
        return () if found is None else (found,)

    @property
    def longest(self) -> int | None:
        """`model_max_length`; None where it is not given or stands for no limit."""
        given = self._settings.get("model_max_length")
        return int(given) if isinstance(given, (int, float)) and given < 2**63 else None

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids of a text; `special`: with what the tokenizer puts around it, such as a BOS."""
        return list(self._tokenizer.encode(text, add_special_tokens=special).ids)

    def decode(self, tokens: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of token ids."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special))

    def render(self, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> list[int]:
        """The prompt of a chat as token ids, the assistant's turn opened.

        `variables` go to the template, as `chat_template_kwargs`. Raises RequestError where there is no template, or it
        refuses the messages.
        """
        if self._template is None:
            raise RequestError("The model has no chat template; use /generate.")
        context = {"add_generation_prompt": True, "tools": None, **self._special, **variables}
        try:
            text = self._template.render(messages=messages, **context)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as error:
            raise RequestError(f"The chat template refused the messages: {error}") from error
        # The template writes its own special tokens.
        return self.encode(text, special=False)


def _compiled(folder: Path, settings: Mapping[str, Any], flag: str) -> jinja2.Template | None:
    """The chat template: `chat_template.jinja`, else the one in tokenizer_config.json; None where there is none."""
    file = folder / "chat_template.jinja"
    source = file.read_text("utf-8") if file.is_file() else settings.get("chat_template")
    if isinstance(source, list):
        source = next((entry["template"] for entry in source if entry.get("name") == "default"), None)
    if source is None:
        return None
    # A checkpoint is data: its template runs where it can neither change its arguments nor reach Python.
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise UsageError(f"{flag}: the chat template in {folder} is malformed ({error})") from error


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


class TextStream:
    """The text of tokens as they come. What the next token may still change is held back until `finish`."""

    def __init__(self, tokenizer: Tokenizer, *, skip_special: bool = True) -> None:
        self.text = ""
        """All text that is certain."""
        self._tokenizer, self._skip_special = tokenizer, skip_special
        self._tokens: list[int] = []
        self._context = 0
        """Tokens from here on are decoded together: those before cannot change the rest."""
        self._certain = 0
        """Tokens before this one are in `text`."""

    def feed(self, tokens: Sequence[int]) -> str:
        """Add tokens; returns the text that became certain."""
        self._tokens.extend(tokens)
        added = self._pending()
        if not added or added.endswith(_UNFINISHED):
            return ""
        return self._take(added)

    def finish(self) -> str:
        """The rest, be it an unfinished character."""
        return self._take(self._pending())

    def _pending(self) -> str:
        # A token's text depends on its neighbour (a leading space, a character in two parts), hence the context.
        before = self._decode(self._tokens[self._context : self._certain])
        return self._decode(self._tokens[self._context :])[len(before) :]

    def _take(self, added: str) -> str:
        self._context, self._certain = self._certain, len(self._tokens)
        self.text += added
        return added

    def _decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special=self._skip_special)

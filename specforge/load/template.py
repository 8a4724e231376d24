"""The model's own chat template, applied here, for servers that have no ``/v1/tokenize``."""

from __future__ import annotations

from collections.abc import Sequence

from specforge.datasets.model import Message
from specforge.errors import UsageError
from specforge.load.prepare import Tokenizer


def local_tokenizer(model_path: str | None) -> Tokenizer:
    """A tokenizer from the model's folder or Hub id.

    Template and tokenization are one step, so a BOS that the template writes is not doubled.

    Raises:
        UsageError: ``transformers`` is not installed, or the model has no tokenizer or no chat template.
    """
    if model_path is None:
        raise UsageError("the server can't tokenize prompts and does not name its model: give --model-path")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise UsageError(
            "the server has no /v1/tokenize, so prompts need the model's own chat template: "
            "install it with: pip install 'specforge[template]'"
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(model_path)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"--model-path: no tokenizer could be loaded from {model_path!r}: {reason}") from None
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(f"--model-path: the tokenizer of {model_path!r} has no chat template")

    async def tokenize(messages: Sequence[Message]) -> list[int] | None:
        ids = tokenizer.apply_chat_template(
            list(messages), tokenize=True, add_generation_prompt=True, return_dict=False
        )
        return [int(token) for token in ids]

    return tokenize

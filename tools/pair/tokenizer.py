"""The pair's tokenizer: byte-level BPE over the training text, every digit a token of its own."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tools.pair.conversation import CHAT_TEMPLATE, END, PAD, SPECIAL_TOKENS, conversations

VOCABULARY = 1024
CONTEXT = 4096


def train(seed: int, excluded: frozenset[str], conversations_read: int = 12000) -> Tokenizer:
    """A tokenizer trained on the first conversations of the training text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    stream = islice(conversations(f"{seed} tokenizer", excluded), conversations_read)
    tokenizer.train_from_iterator((text for conversation in stream for text, _ in conversation.pieces()), trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes the files that Hugging Face's ``AutoTokenizer`` reads."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": PAD,
        "eos_token": END,
        "pad_token": PAD,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONTEXT,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    special = {"bos_token": PAD, "eos_token": END, "pad_token": PAD}
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=2) + "\n")

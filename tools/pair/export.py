"""Writes trained networks as the folders that Hugging Face, SGLang and the embedded engine load, in half precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from tools.pair import tokenizer as tokens
from tools.pair.conversation import END, PAD
from tools.pair.network import Eagle3, Shape, Target


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    save_file(tensors, path, {"format": "pt"})
    path.chmod(0o644)  # the library writes for the owner alone


def half(state: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """A state dict as stored: floats in half precision, everything else as it is."""
    return {
        prefix + name: (value.half() if value.is_floating_point() else value).contiguous()
        for name, value in state.items()
    }


def config(shape: Shape, tokenizer: Tokenizer, architecture: str, **more: Any) -> dict[str, Any]:
    """A Llama ``config.json``; the rotary base stands in both places where versions of transformers look for it."""
    return {
        "architectures": [architecture],
        "model_type": "llama",
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.num_hidden_layers,
        "num_attention_heads": shape.num_attention_heads,
        "num_key_value_heads": shape.num_key_value_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": tokens.CONTEXT,
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_theta": shape.rope_theta,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.token_to_id(PAD),
        "eos_token_id": tokenizer.token_to_id(END),
        "pad_token_id": tokenizer.token_to_id(PAD),
        "torch_dtype": "float16",
        **more,
    }


def export_llama(model: Target, tokenizer: Tokenizer, folder: Path) -> None:
    """A complete ``LlamaForCausalLM`` folder with tokenizer, chat template and greedy generation settings."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", half(model.state_dict(), "model."))
    write_json(folder / "config.json", config(model.shape, tokenizer, "LlamaForCausalLM"))
    generation = {
        "bos_token_id": tokenizer.token_to_id(PAD),
        "eos_token_id": tokenizer.token_to_id(END),
        "pad_token_id": tokenizer.token_to_id(PAD),
        "do_sample": False,
    }
    write_json(folder / "generation_config.json", generation)
    tokens.save(tokenizer, folder)


def export_head(head: Eagle3, tokenizer: Tokenizer, folder: Path) -> None:
    """An EAGLE3 checkpoint in SGLang's format; it shares the target's embedding and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", half(head.state_dict()))
    more = {"num_hidden_layers": 1, "draft_vocab_size": len(head.d2t), "tie_word_embeddings": False}
    write_json(folder / "config.json", config(head.shape, tokenizer, "LlamaForCausalLMEagle3", **more))


def rounded(model: torch.nn.Module) -> None:
    """Gives a network the values that its export holds, so that what is measured is what is shipped."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())

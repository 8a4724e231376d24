"""Writes a tiny Llama target and a matching EAGLE3 draft, both with seeded random weights::

    VENV/bin/python tests/sglang_cpu/tiny_models.py TOKENIZER_DIR OUT_DIR

TOKENIZER_DIR is any Hugging Face folder with a tokenizer and a chat template (smollm2.py makes one). OUT_DIR gets
target/ and eagle3/. Both load in SGLang; acceptance is near nothing, since nothing was trained.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, LAYERS, CONTEXT, DRAFT_VOCAB = 128, 256, 4, 2, 32, 2, 4096, 8192


def write_target(tokenizer: PreTrainedTokenizerBase, out: Path) -> None:
    """A Llama of two layers."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=CONTEXT,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)


def draft_tensors(vocabulary: int) -> dict[str, torch.Tensor]:
    """The weights of an EAGLE3 head, under the names of SGLang's checkpoint format."""
    generator = torch.Generator().manual_seed(1)

    def weight(*shape: int) -> torch.Tensor:
        return (torch.randn(*shape, generator=generator) * 0.02).to(torch.bfloat16)

    def ones() -> torch.Tensor:
        return torch.ones(HIDDEN, dtype=torch.bfloat16)

    return {
        "fc.weight": weight(HIDDEN, 3 * HIDDEN),  # three hidden states of the target become one
        "norm.weight": ones(),
        "midlayer.hidden_norm.weight": ones(),
        "midlayer.input_layernorm.weight": ones(),
        "midlayer.post_attention_layernorm.weight": ones(),
        # Attention sees the embedding and the hidden state side by side.
        "midlayer.self_attn.q_proj.weight": weight(HEADS * HEAD_DIM, 2 * HIDDEN),
        "midlayer.self_attn.k_proj.weight": weight(KV_HEADS * HEAD_DIM, 2 * HIDDEN),
        "midlayer.self_attn.v_proj.weight": weight(KV_HEADS * HEAD_DIM, 2 * HIDDEN),
        "midlayer.self_attn.o_proj.weight": weight(HIDDEN, HEADS * HEAD_DIM),
        "midlayer.mlp.gate_proj.weight": weight(INNER, HIDDEN),
        "midlayer.mlp.up_proj.weight": weight(INNER, HIDDEN),
        "midlayer.mlp.down_proj.weight": weight(HIDDEN, INNER),
        "lm_head.weight": weight(DRAFT_VOCAB, HIDDEN),
        "d2t": torch.zeros(DRAFT_VOCAB, dtype=torch.int64),  # draft id i is target id i + d2t[i]
        "t2d": torch.arange(vocabulary) < DRAFT_VOCAB,
    }


def write_draft(tokenizer: PreTrainedTokenizerBase, out: Path) -> None:
    """The EAGLE3 head."""
    out.mkdir()
    save_file(draft_tensors(len(tokenizer)), out / "model.safetensors")
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "num_hidden_layers": 1,
        "vocab_size": len(tokenizer),
        "draft_vocab_size": DRAFT_VOCAB,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "attention_bias": False,
        "mlp_bias": False,
    }
    (out / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def main() -> None:
    """Makes OUT_DIR, which appears only when it is complete; does nothing where it is there."""
    source, out = sys.argv[1], Path(sys.argv[2])
    if out.exists():
        return
    tokenizer = AutoTokenizer.from_pretrained(source)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        made = Path(folder, "models")
        write_target(tokenizer, made / "target")
        write_draft(tokenizer, made / "eagle3")
        made.rename(out)


if __name__ == "__main__":
    main()

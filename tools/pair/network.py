"""The two networks in PyTorch: a Llama target and an EAGLE3 draft head, with their checkpoints' parameter names."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """The sizes of one network, in the words of a Hugging Face Llama ``config.json``."""

    vocab_size: int
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 10
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    @property
    def captured_layers(self) -> tuple[int, int, int]:
        """The layers whose *inputs* SGLang hands to an EAGLE3 head by default (``set_eagle3_layers_to_capture``)."""
        layers = self.num_hidden_layers
        return (2, layers // 2, layers - 3)


def rotary(shape: Shape, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary embedding for positions 0 to ``length`` - 1, each (length, head_dim)."""
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = torch.arange(length, dtype=torch.float32)[:, None] / shape.rope_theta**half
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Applies the rotary embedding to (..., length, head_dim), halves paired as Llama checkpoints pair them."""
    first, second = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat([-second, first], -1) * sin.to(x.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention; at these lengths plain products go backward in a quarter of the fused CPU kernel's time."""
    later = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-1, -2)).masked_fill(later, float("-inf"))
    return (scores * q.shape[-1] ** -0.5).softmax(-1, dtype=q.dtype) @ v


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


class Attention(nn.Module):
    """Grouped-query attention; ``inputs`` is the width that the query, key and value projections read."""

    def __init__(self, shape: Shape, inputs: int) -> None:
        super().__init__()
        self.heads, self.groups, self.width = shape.num_attention_heads, shape.num_key_value_heads, shape.head_dim
        self.q_proj = nn.Linear(inputs, self.heads * self.width, bias=False)
        self.k_proj = nn.Linear(inputs, self.groups * self.width, bias=False)
        self.v_proj = nn.Linear(inputs, self.groups * self.width, bias=False)
        self.o_proj = nn.Linear(self.heads * self.width, shape.hidden_size, bias=False)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (batch, heads, length, head_dim), keys and values repeated for their group."""
        batch, length, _ = x.shape

        def split(y: Tensor, heads: int) -> Tensor:
            return y.view(batch, length, heads, self.width).transpose(1, 2)

        repeats = self.heads // self.groups
        q = rotate(split(self.q_proj(x), self.heads), cos, sin)
        k = rotate(split(self.k_proj(x), self.groups), cos, sin)
        v = split(self.v_proj(x), self.groups)
        return q, k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)

    def merge(self, attended: Tensor) -> Tensor:
        batch, _, length, _ = attended.shape
        return self.o_proj(attended.transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = self.project(x, cos, sin)
        return self.merge(attend(q, k, v))


class MLP(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape, shape.hidden_size)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = MLP(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Target(nn.Module):
    """A Llama with tied embeddings; its state dict has the names that ``LlamaForCausalLM`` reads under ``model.``."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.03 / (2 * shape.num_hidden_layers) ** 0.5 if residual else 0.03)

    def hidden(self, tokens: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Final normed hidden states of ``tokens`` (batch, length), and the captured layers' inputs."""
        cos, sin = rotary(self.shape, tokens.shape[1])
        x = self.embed_tokens(tokens)
        if torch.is_autocast_enabled("cpu"):
            x = x.to(torch.get_autocast_dtype("cpu"))
        captured = []
        for index, layer in enumerate(self.layers):
            if index in self.shape.captured_layers:
                captured.append(x)
            x = layer(x, cos, sin)
        return self.norm(x), captured

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embed_tokens.weight)

    @torch.no_grad()
    def greedy(self, prompts: Tensor, limit: int, end: int) -> Tensor:
        """The greedy continuations of ``prompts``, all of one length: (batch, at most ``limit``) tokens.

        A row that said ``end`` goes on with what it would say; the caller cuts there.
        """
        batch, length = prompts.shape
        cos, sin = rotary(self.shape, length + limit)
        size = (batch, self.shape.num_attention_heads, length + limit, self.shape.head_dim)
        keys = [torch.zeros(size) for _ in self.layers]
        values = [torch.zeros(size) for _ in self.layers]
        said: list[Tensor] = []
        tokens, at = prompts, 0
        ended = torch.zeros(batch, dtype=torch.bool)
        while len(said) < limit and not ended.all():
            upto = at + tokens.shape[1]
            x = self.embed_tokens(tokens)
            for index, layer in enumerate(self.layers):
                q, k, v = layer.self_attn.project(layer.input_layernorm(x), cos[at:upto], sin[at:upto])
                keys[index][:, :, at:upto], values[index][:, :, at:upto] = k, v
                attended = F.scaled_dot_product_attention(
                    q, keys[index][:, :, :upto], values[index][:, :, :upto], is_causal=tokens.shape[1] > 1
                )
                x = x + layer.self_attn.merge(attended)
                x = x + layer.mlp(layer.post_attention_layernorm(x))
            tokens = self.logits(self.norm(x[:, -1:])).argmax(-1)
            said.append(tokens)
            ended |= tokens[:, 0] == end
            at = upto
        return torch.cat(said, 1)


class DraftLayer(nn.Module):
    """The head's one layer: a Llama layer that reads an embedding and a hidden state side by side."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.hidden_norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape, 2 * shape.hidden_size)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = MLP(shape)

    def joined(self, embeds: Tensor, hidden: Tensor) -> Tensor:
        return torch.cat([self.input_layernorm(embeds), self.hidden_norm(hidden)], -1)

    def rest(self, attended: Tensor, hidden: Tensor) -> Tensor:
        x = hidden + self.self_attn.merge(attended)
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3(nn.Module):
    """An EAGLE3 head (Li et al. 2025); its state dict has the names that SGLang's ``LlamaForCausalLMEagle3`` reads.

    Attributes:
        d2t: what is added to a draft id to get the target's id (draft vocabulary,).
        t2d: whether the target's id is in the draft vocabulary (vocabulary,).
    """

    d2t: Tensor
    t2d: Tensor

    def __init__(self, shape: Shape, drafted: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(3 * shape.hidden_size, shape.hidden_size, bias=False)
        self.midlayer = DraftLayer(shape)
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, len(drafted), bias=False)
        in_draft = torch.zeros(shape.vocab_size, dtype=torch.bool)
        in_draft[drafted] = True
        self.register_buffer("d2t", drafted - torch.arange(len(drafted)))
        self.register_buffer("t2d", in_draft)

    @property
    def drafted(self) -> Tensor:
        """The target's ids of the draft vocabulary, in its order."""
        return self.d2t + torch.arange(len(self.d2t))

    def unrolled(self, embeds: Tensor, features: Tensor, steps: int, start: int = 0) -> list[Tensor]:
        """Training-time test: the head's logits for ``steps`` drafts in a row from every position at once.

        Position i reads the features there and the token after it; its first draft is the token after that.
        Step k reads the true token k places on, with the head's own hidden state of step k - 1 for the target's,
        and attends, as it will when it drafts, to the target's positions up to i and to its own earlier steps from i.

        Args:
            embeds: the target's embeddings of tokens 1 to length + steps - 1: (batch, length + steps - 1, hidden).
            features: the three captured hidden states of tokens 0 to length - 1, joined: (batch, length, 3 * hidden).
            start: the first position that drafts; those before it are only attended to.

        Returns:
            For each step the logits (batch, length - start, draft vocabulary).
        """
        length = features.shape[1]
        cos, sin = rotary(self.shape, length + steps)
        layer, attention = self.midlayer, self.midlayer.self_attn
        hidden = self.fc(features)
        q, past_keys, past_values = attention.project(
            layer.joined(embeds[:, :length], hidden), cos[:length], sin[:length]
        )
        q, hidden = q[:, :, start:], hidden[:, start:]
        hidden_from_later = torch.ones(length, length, dtype=torch.bool).triu(1)[start:]
        own: list[tuple[Tensor, Tensor]] = []
        logits = []
        for step in range(steps):
            if step:
                here = slice(start + step, length + step)
                q, k, v = attention.project(layer.joined(embeds[:, here], hidden), cos[here], sin[here])
                own.append((k, v))
            scores = (q @ past_keys.transpose(-1, -2)).masked_fill(hidden_from_later, float("-inf"))
            scores = torch.cat([scores, *((q * k).sum(-1, keepdim=True) for k, _ in own)], -1)
            weights = (scores.float() / self.shape.head_dim**0.5).softmax(-1).to(q.dtype)
            attended = weights[..., :length] @ past_values
            for index, (_, v) in enumerate(own):
                attended = attended + weights[..., length + index, None] * v
            hidden = layer.rest(attended, hidden)
            logits.append(self.lm_head(self.norm(hidden)))
        return logits

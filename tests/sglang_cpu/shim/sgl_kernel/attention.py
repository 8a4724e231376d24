"""Plain causal attention over the paged KV cache, and over a draft tree."""

import torch
import torch.nn.functional as F


def _attend(q, k, v, mask, scale):
    """q [n, heads, d], k and v [m, kv_heads, d], mask [n, m] or None -> [n, heads, d of v]."""
    out = F.scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        k.transpose(0, 1).unsqueeze(0),
        v.transpose(0, 1).unsqueeze(0),
        attn_mask=mask,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return out.squeeze(0).transpose(0, 1)


def _refuse_what_is_not_plain(logit_cap, is_cross_attn, sinks):
    if logit_cap or sinks is not None or is_cross_attn:
        raise RuntimeError("stand-in attention: plain causal attention only")


def decode_attention_cpu(
    q,
    k_buffer,
    v_buffer,
    key_scale,
    value_scale,
    o,
    k,
    v,
    loc,
    attn_logits,
    req_to_token,
    req_pool_indices,
    seq_lens,
    sm_scale,
    logit_cap,
    is_cross_attn=False,
    sliding_window_size=0,
    encoder_lens=None,
    sinks=None,
):
    """One new token a request: its key and value are stored first."""
    _refuse_what_is_not_plain(logit_cap, is_cross_attn, sinks)
    if k is not None:
        k_buffer[loc] = k.view(-1, *k_buffer.shape[1:]).to(k_buffer.dtype)
        v_buffer[loc] = v.view(-1, *v_buffer.shape[1:]).to(v_buffer.dtype)
    for at, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        slots = req_to_token[row, :length].long()
        o[at] = _attend(q[at : at + 1], k_buffer[slots], v_buffer[slots], None, sm_scale)[0]


def extend_attention_cpu(
    q,
    k,
    v,
    o,
    k_buffer,
    v_buffer,
    key_scale,
    value_scale,
    req_to_token,
    req_pool_indices,
    seq_lens,
    extend_seq_lens,
    extend_start_loc,
    max_len_extend,
    sm_scale,
    logit_cap,
    is_cross_attn=False,
    sliding_window_size=0,
    encoder_lens=None,
    sinks=None,
    tree_mask=None,
    is_causal=True,
):
    """Several new tokens a request. ``tree_mask``, where given, holds one new-by-new block for each request."""
    _refuse_what_is_not_plain(logit_cap, is_cross_attn, sinks)
    rows = zip(
        req_pool_indices.tolist(),
        seq_lens.tolist(),
        extend_seq_lens.tolist(),
        extend_start_loc.tolist(),
        strict=True,
    )
    masked = 0
    for row, total, new, start in rows:
        slots = req_to_token[row, :total].long()
        prefix = total - new
        mask = None
        if tree_mask is not None:
            mask = torch.ones(new, total, dtype=torch.bool)
            mask[:, prefix:] = tree_mask[masked : masked + new * new].view(new, new).bool()
            masked += new * new
        elif is_causal:
            mask = torch.ones(new, total, dtype=torch.bool).tril(prefix)
        o[start : start + new] = _attend(q[start : start + new], k_buffer[slots], v_buffer[slots], mask, sm_scale)


def build_draft_decode_metadata_cpu(req_to_token, req_pool_indices, seq_lens, topk, num_steps, pool_len):
    """For each branch of each request, a row of slots: the committed prefix, then the branch's own drafts."""
    out = torch.zeros(seq_lens.numel() * topk, pool_len, dtype=req_to_token.dtype)
    for at, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        for branch in range(topk):
            slots = out[at * topk + branch]
            slots[:length] = req_to_token[row, :length]
            own = req_to_token[row, length + branch * num_steps : length + (branch + 1) * num_steps]
            slots[length : length + own.numel()] = own
    return out

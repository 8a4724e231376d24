"""Bookkeeping of KV-cache slots and of committed tokens. All write into tensors that the caller gives."""

import ctypes


def assign_req_to_token_pool_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    """Enters newly allocated slots into each request's row."""
    taken = 0
    for row, start, end in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True):
        if end > start:
            req_to_token[row, start:end] = out_cache_loc[taken : taken + end - start].to(req_to_token.dtype)
            taken += end - start


def assign_extend_cache_locs_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    """Collects the slots of a span of each request's row."""
    taken = 0
    for row, start, end in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True):
        if end > start:
            out_cache_loc[taken : taken + end - start] = req_to_token[row, start:end].to(out_cache_loc.dtype)
            taken += end - start


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices, req_to_token, seq_lens, out_cache_loc, pool_len, topk, num_steps
):
    """Collects the slots behind each sequence that drafting writes to."""
    drafts = topk * num_steps
    for at, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        slots = req_to_token[row, length : length + drafts]
        out_cache_loc[at * drafts : (at + 1) * drafts] = slots.to(out_cache_loc.dtype)


def copy_all_layer_kv_cache_cpu(data_ptrs, strides, tgt_loc, src_loc):
    """Copies slots within the buffers of every layer; all are read before any is written."""
    targets, sources = tgt_loc.tolist(), src_loc.tolist()
    for base, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(base + source * stride, stride) for source in sources]
        for target, row in zip(targets, rows, strict=True):
            ctypes.memmove(base + target * stride, row, stride)


def fill_bonus_tokens_cpu(accept_tokens, accept_lens, bonus_tokens, accept_stride):
    """Takes the last accepted token of each request."""
    for at, length in enumerate(accept_lens.tolist()):
        bonus_tokens.view(-1)[at] = accept_tokens.reshape(-1)[at * accept_stride + length - 1]


def fill_accept_out_cache_loc_cpu(accept_index, out_cache_loc, accept_out_cache_loc):
    """Collects the slots of accepted tokens; -1 marks one that was not."""
    index = accept_index.reshape(-1)
    index = index[index > -1].long()
    accepted = out_cache_loc.reshape(-1)[index]
    accept_out_cache_loc.view(-1)[: index.numel()] = accepted.to(accept_out_cache_loc.dtype)


def rotate_input_ids_cpu(input_ids, extend_start_loc, extend_seq_lens, topk_index, select_index=None):
    """Shifts each request's tokens left by one and puts the newly sampled one at the end (or at ``select_index``)."""
    sampled = topk_index.reshape(-1)
    spans = zip(extend_start_loc.tolist(), extend_seq_lens.tolist(), strict=True)
    for at, (start, length) in enumerate(spans):
        if length <= 0:
            continue
        input_ids[start : start + length - 1] = input_ids[start + 1 : start + length].clone()
        last = int(select_index[at]) if select_index is not None else start + length - 1
        input_ids[last] = sampled[at]

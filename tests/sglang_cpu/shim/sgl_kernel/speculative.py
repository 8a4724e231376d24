"""The operator that SGLang imports from sgl_kernel.speculative (NGRAM)."""

import torch


def reconstruct_indices_from_tree_mask(
    tree_mask,
    verified_seq_len,
    positions,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    batch_size,
    draft_token_num,
):
    """Reads positions and the links to first child and next sibling off the trees' masks."""
    nodes = draft_token_num
    ancestors = tree_mask.view(batch_size, nodes, nodes).bool() & torch.ones(nodes, nodes, dtype=torch.bool).tril(-1)
    positions.view(batch_size, nodes).copy_(ancestors.sum(-1) + verified_seq_len.view(-1, 1))
    retrive_index.view(batch_size, nodes).copy_(torch.arange(batch_size * nodes).view(batch_size, nodes))
    column = torch.arange(nodes)
    parent = torch.where(ancestors, column, -1).amax(-1)
    first_child = torch.where(ancestors, column.view(nodes, 1), nodes).amin(1)
    retrive_next_token.view(batch_size, nodes).copy_(torch.where(first_child < nodes, first_child, -1))
    alike = (parent.unsqueeze(2) == parent.unsqueeze(1)) & (column.view(nodes, 1) > column.view(1, nodes))
    sibling = torch.where(alike, column.view(nodes, 1), nodes).amin(1)
    has_sibling = (sibling < nodes) & (parent >= 0)
    retrive_next_sibling.view(batch_size, nodes).copy_(torch.where(has_sibling, sibling, -1))

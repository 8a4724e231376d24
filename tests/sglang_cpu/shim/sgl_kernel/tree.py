"""Draft trees: laid out for verification, and verified greedily."""

import torch

_FULL_MASK = 0


def build_tree_kernel_efficient_cpu(
    parent_list,
    selected_index,
    verified_seq_len,
    tree_mask,
    positions,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    topk,
    depth,
    draft_token_num,
    tree_mask_mode,
):
    """Writes each request's tree: mask, positions, links to first child and next sibling. Node 0 is the root."""
    nodes = draft_token_num
    batch = verified_seq_len.shape[0]
    parents = parent_list.reshape(batch, -1).tolist()
    selected = selected_index.reshape(batch, -1).tolist()
    lengths = verified_seq_len.tolist()
    flat_mask = tree_mask.view(-1)
    flat_positions = positions.view(-1)
    index = retrive_index.view(batch, nodes)
    next_token = retrive_next_token.view(batch, nodes)
    next_sibling = retrive_next_sibling.view(batch, nodes)
    before = 0
    for at in range(batch):
        length = lengths[at]
        parent = _parents(selected[at], parents[at], nodes, topk)
        child, sibling = _links(parent)
        index[at] = torch.arange(at * nodes, (at + 1) * nodes, dtype=index.dtype)
        next_token[at] = torch.tensor(child, dtype=next_token.dtype)
        next_sibling[at] = torch.tensor(sibling, dtype=next_sibling.dtype)
        sees = torch.zeros(nodes, nodes, dtype=flat_mask.dtype)
        for node in range(nodes):
            sees[node, 0] = 1
            level, current = 0, node
            while current not in (0, None) and level < depth:
                sees[node, current] = 1
                level += 1
                current = parent[current]
            flat_positions[at * nodes + node] = length + level
        if tree_mask_mode == _FULL_MASK:  # the committed prefix is left as the caller filled it
            width = length + nodes
            start = nodes * nodes * at + before * nodes
            for node in range(nodes):
                own = start + width * node + length
                flat_mask[own : own + nodes] = sees[node]
        else:
            flat_mask[nodes * nodes * at : nodes * nodes * (at + 1)] = sees.view(-1)
        before += length


def _parents(selected, parents, nodes, topk):
    """Each node's parent; None for the root and for a node whose parent was not selected."""
    where = {}
    for at, token in enumerate(selected[: nodes - 1]):
        where.setdefault(token, at)

    def parent_of(node):
        group = selected[node - 1] // topk
        if group == 0:
            return 0
        at = where.get(parents[group])
        return None if at is None else at + 1

    return [None, *(parent_of(node) for node in range(1, nodes))]


def _links(parent):
    """First child and next sibling of each node, -1 for none."""
    child, sibling = [-1] * len(parent), [-1] * len(parent)
    for node in range(len(parent) - 1, 0, -1):
        above = parent[node]
        if above is not None:
            sibling[node] = child[above]
            child[above] = node
    return child, sibling


def verify_tree_greedy_cpu(
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    """Walks each tree down while a child is what the target predicts, and adds the target's own next token."""
    width = accept_index.shape[1]
    candidates, index = candidates.tolist(), retrive_index.tolist()
    next_token, next_sibling = retrive_next_token.tolist(), retrive_next_sibling.tolist()
    target = target_predict.reshape(-1).tolist()
    predicted = predicts.view(-1)
    for at, drafted in enumerate(candidates):
        last, node, accepted = index[at][0], 0, 0
        accept_index[at, 0] = last
        for _ in range(1, width):
            node = next_token[at][node]
            while node != -1 and drafted[node] != target[last]:
                node = next_sibling[at][node]
            if node == -1:
                break
            predicted[last] = target[last]
            accepted += 1
            last = index[at][node]
            accept_index[at, accepted] = last
        accept_token_num[at] = accepted
        predicted[last] = target[last]

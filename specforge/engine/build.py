"""Puts the engine together from its arguments."""

from dataclasses import dataclass

from specforge.engine.arguments import Arguments, model_folder
from specforge.engine.drafts.autoregressive import AutoregressiveDrafter
from specforge.engine.drafts.drafter import Drafter, NoDraft
from specforge.engine.drafts.eagle3 import Eagle3Head
from specforge.engine.drafts.ngram import NgramDrafter
from specforge.engine.drafts.standalone import StandaloneModel
from specforge.engine.folder import read_config, read_json, read_weights, token_ids
from specforge.engine.model import ARCHITECTURES, Llama
from specforge.engine.runner import Runner
from specforge.engine.scheduler import Scheduler
from specforge.engine.tokenizer import Tokenizer
from specforge.errors import UsageError

_PREFIX_BYTES = 512 << 20
_FEWEST_PREFIX_TOKENS = 4096

FROM_GENERATION_CONFIG = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


@dataclass(frozen=True)
class Engine:
    """Everything the server needs."""

    arguments: Arguments
    scheduler: Scheduler
    tokenizer: Tokenizer
    vocabulary: int
    context: int
    """Most tokens of a request."""
    reserved: int
    """Tokens that speculation counts on top of each prompt, as SGLang does."""
    nodes: int
    """Nodes of a draft tree; 1 without speculation."""
    eos: frozenset[int]
    chat_defaults: dict[str, float]
    """Sampling parameters that the model's `generation_config.json` sets."""
    architecture: str
    prefix_budget: int


def build(arguments: Arguments) -> Engine:
    """Load the models. Raises UsageError, naming the flag, for a folder or a draft that can't be used."""
    folder = model_folder(arguments.model_path)
    spread = arguments.speculative_num_steps or 0, arguments.speculative_num_draft_tokens or 0
    # Drafts run a little past the last position a request may reach.
    config = read_config(folder, "--model-path", ARCHITECTURES)
    context = arguments.context_length or config.context
    target = Llama(config, read_weights(folder, "--model-path"), "--model-path", context + max(spread))
    tokenizer = Tokenizer(model_folder(arguments.tokenizer_path), "--tokenizer-path")
    if tokenizer.vocabulary > target.config.vocabulary:
        raise UsageError(
            f"--tokenizer-path: {tokenizer.vocabulary} tokens, expected at most the model's {target.config.vocabulary}"
        )
    generation_file = folder / "generation_config.json"
    generation = read_json(generation_file) if generation_file.is_file() else {}
    eos = frozenset((*target.config.eos, *token_ids(generation.get("eos_token_id")), *tokenizer.eos))
    slots = arguments.max_running_requests
    drafter = _drafter(arguments, target, slots)
    cell_bytes = sum(cache.bytes_per_token for cache in (target.new_cache(1), *drafter.caches))
    budget = arguments.max_total_tokens or max(_FEWEST_PREFIX_TOKENS, _PREFIX_BYTES // cell_bytes)
    if arguments.disable_radix_cache:
        budget = 0
    topk = arguments.speculative_eagle_topk or 0
    return Engine(
        arguments=arguments,
        scheduler=Scheduler(Runner(target, drafter, slots, budget, eos), slots),
        tokenizer=tokenizer,
        vocabulary=target.config.vocabulary,
        context=context,
        reserved=max(topk * (arguments.speculative_num_steps or 0), drafter.nodes) if drafter.pairs else 0,
        nodes=drafter.nodes,
        eos=eos,
        chat_defaults={name: generation[name] for name in FROM_GENERATION_CONFIG if generation.get(name) is not None},
        architecture=target.config.architecture,
        prefix_budget=budget,
    )


def _drafter(arguments: Arguments, target: Llama, slots: int) -> Drafter:
    algorithm, nodes = arguments.speculative_algorithm, arguments.speculative_num_draft_tokens
    if algorithm is None or nodes is None:
        return NoDraft()
    if algorithm == "NGRAM":
        return NgramDrafter(nodes)
    folder = model_folder(arguments.speculative_draft_model_path or "")
    load = Eagle3Head.load if algorithm == "EAGLE3" else StandaloneModel.load
    model = load(folder, target)
    steps, topk = arguments.speculative_num_steps or 1, arguments.speculative_eagle_topk or 1
    return AutoregressiveDrafter(model, slots, steps, topk, nodes)

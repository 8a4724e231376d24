"""The recipe: ``python -m tools.pair --work DIR`` trains target, drafts, exports and measures them.

Every stage goes on from what it finds in DIR, so that an interrupted run is started again with the same command.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

from specforge.datasets.scorers import ScoringOptions
from tools.pair import distilled, head, target
from tools.pair.batches import Encoded
from tools.pair.evaluate import report
from tools.pair.export import export_head, export_llama, rounded
from tools.pair.holdout import held_out
from tools.pair.network import Shape, Target
from tools.pair.tokenizer import VOCABULARY
from tools.pair.tokenizer import train as train_tokenizer

TARGET = Shape(VOCABULARY)
STANDALONE = Shape(
    VOCABULARY,
    hidden_size=96,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
)


def tokenizer_of(work: Path, seed: int) -> Tokenizer:
    path = work / "tokenizer.json"
    if not path.exists():
        train_tokenizer(seed, held_out()).save(str(path))
    return Tokenizer.from_file(str(path))


def distilled_of(work: Path, model: Target, tokenizer: Tokenizer, count: int, seed: int) -> list[Encoded]:
    """What the target says to fresh questions; kept as JSON lines of ids and of 0 or 1 for who says them."""
    path = work / "distilled.jsonl"
    if not path.exists():
        said = distilled.distill(model, tokenizer, count, seed, held_out())
        lines = (json.dumps([ids, [int(says) for says in spoken]]) for ids, spoken in said)
        path.write_text("\n".join(lines) + "\n")
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return [(ids, [bool(says) for says in spoken]) for ids, spoken in rows]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.pair", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints; a run goes on from there")
    parser.add_argument(
        "--out", type=Path, help="folder that gets target/, eagle3/ and standalone/ (default: WORK/models)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target-steps", type=int, default=2300)
    parser.add_argument("--conversations", type=int, default=12000, help="conversations that the head learns from")
    parser.add_argument("--head-steps", type=int, default=1500)
    parser.add_argument("--standalone-steps", type=int, default=800)
    parser.add_argument("--allow-code-execution", action="store_true", help="score the code that the target writes")
    arguments = parser.parse_args()
    work, seed = arguments.work, arguments.seed
    torch.set_num_threads(arguments.threads)
    work.mkdir(parents=True, exist_ok=True)
    out = arguments.out or work / "models"

    tokenizer = tokenizer_of(work, seed)
    model = target.train(work, TARGET, arguments.target_steps, seed)
    rounded(model)
    said = distilled_of(work, model, tokenizer, arguments.conversations, seed)
    draft_head = head.train(work, model, said, arguments.head_steps, seed)
    rounded(draft_head)
    standalone = target.train(work, STANDALONE, arguments.standalone_steps, seed, name="standalone")
    export_llama(model, tokenizer, out / "target")
    export_head(draft_head, tokenizer, out / "eagle3")
    export_llama(standalone, tokenizer, out / "standalone")
    options = ScoringOptions(allow_code_execution=arguments.allow_code_execution)
    print(report(model, draft_head, tokenizer, options))


if __name__ == "__main__":
    main()

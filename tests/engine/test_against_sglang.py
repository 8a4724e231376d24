"""The same folders in the real SGLang: the same tokens, steps and acceptance."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.engine import tiny
from tests.engine.conftest import EngineFactory, Models
from tests.engine.contract import flush, generate
from tests.support.sglang import ServerFactory

FLAGS = ["--max-running-requests", "4", "--random-seed", "1"]
COUNTS = ("completion_tokens", "spec_verify_ct", "spec_correct_drafts_histogram", "spec_num_correct_drafts")
PARAMS = {"temperature": 0, "max_new_tokens": 40, "ignore_eos": True}


def answers(url: str, prompts: list[list[int]]) -> list[tuple[list[int], list[Any]]]:
    """Output tokens and counts of each prompt, four at a time."""
    flush(url)
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda prompt: generate(url, input_ids=prompt, sampling_params=PARAMS), prompts))
    return [(reply["output_ids"], [reply["meta_info"].get(name) for name in COUNTS]) for reply in replies]


@pytest.mark.sglang
@pytest.mark.parametrize(
    "algorithm, shape", [("EAGLE3", "3,1,4"), ("EAGLE3", "4,3,10"), ("STANDALONE", "3,1,4"), ("STANDALONE", "4,3,10")]
)
def test_tokens_and_acceptance_are_sglangs(
    algorithm: str, shape: str, engine: EngineFactory, models: Models, sglang_server: ServerFactory
) -> None:
    draft = models.draft_flags(algorithm, shape)
    ours = answers(engine(models.target, *FLAGS, *draft).url, tiny.prompts(50))
    theirs = answers(sglang_server(models.target, *FLAGS, "--dtype", "float32", *draft), tiny.prompts(50))
    # One in a hundred may differ where two logits, or two drafts' scores, are the same but for rounding.
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    assert same >= 49
    assert sum(counts[3] for _, counts in ours) > 100

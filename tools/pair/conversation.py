"""From examples to training text: the harness's own prompts, the answers its scorers expect, the pair's chat template."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from specforge.datasets.registry import definitions
from tools.pair.example import Example
from tools.pair.families import choices, dialogues, programs, sums
from tools.pair.holdout import identities

END, PAD = "<|end|>", "<|endoftext|>"
ROLES = ("system", "user", "assistant")
SPECIAL_TOKENS = (PAD, *(f"<|{role}|>" for role in ROLES), END)
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SYSTEM = "You are a helpful assistant."

MIXTURE: dict[Callable[[Random], Example], float] = {
    sums.story: 0.33,
    sums.problem: 0.08,
    sums.contest: 0.05,
    programs.stub: 0.09,
    programs.in_words: 0.06,
    programs.contest: 0.06,
    choices.general: 0.08,
    choices.chinese: 0.07,
    choices.science: 0.04,
    dialogues.conversation: 0.08,
    dialogues.chat: 0.03,
    dialogues.fact: 0.01,
    dialogues.finance: 0.02,
}
UNINSTRUCTED = 0.15
"""The share of questions asked without the harness's instruction, as somebody at a prompt would."""


def answered(example: Example, letter: str = "") -> tuple[str, ...]:
    """The replies, one a turn, in the form that the dataset's scorer reads."""
    working = example.working[0]
    match example.dataset:
        case "gsm8k" | "math500" | "aime":
            return (rf"{working}" + "\n" + rf"The final answer is \boxed{{{example.answer}}}.",)
        case "mmlu" | "gpqa":
            return (f"{working}\nAnswer: {letter}",)
        case "ceval":
            return (f"{working}\n答案：{letter}",)
        case "humaneval" | "mbpp" | "livecodebench":
            return (f"```python\n{working}\n```",)
        case "financeqa":
            return (f"{working}\nAnswer: {example.answer}",)
        case _:
            return example.working


def plain(example: Example) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The example as a bare question and its reply; None where it makes no sense without its instruction."""
    row = example.row
    match example.dataset:
        case "gsm8k":
            return (row["question"],), (f"{example.working[0]}\nThe answer is {example.answer}.",)
        case "math500":
            return (row["problem"],), (f"{example.working[0]}\nThe answer is {example.answer}.",)
        case "mbpp" | "humaneval":
            return (row["prompt"],), answered(example)
        case "mtbench" | "chat":
            return tuple(row["prompt"]), example.working
        case _:
            return None


def turns(example: Example, random: Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The user's and the assistant's turns of one conversation."""
    bare = plain(example)
    if example.dataset == "chat" or (bare and random.random() < UNINSTRUCTED):
        assert bare is not None
        return bare
    question = definitions()[example.dataset].question(example.row)
    assert isinstance(question.content, str)
    return (question.content, *question.followups), answered(example, str(question.reference))


def rendered(users: tuple[str, ...], replies: tuple[str, ...], system: str = "") -> list[tuple[str, bool]]:
    """A conversation under the chat template, as (text, whether the model is to say it) pieces."""
    pieces = [(f"<|system|>{system}{END}", False)] if system else []
    for user, reply in zip(users, replies, strict=True):
        pieces += [(f"<|user|>{user}{END}<|assistant|>", False), (f"{reply}{END}", True)]
    return pieces


def examples(seed: Any, excluded: frozenset[str]) -> Iterator[Example]:
    """An endless stream of examples, none of which asks what is excluded."""
    random = Random(seed)
    families, weights = zip(*MIXTURE.items(), strict=True)
    while True:
        example = random.choices(families, weights)[0](random)
        if excluded.isdisjoint(identities(example.dataset, example.row)):
            yield example


def conversations(seed: Any, excluded: frozenset[str]) -> Iterator[list[tuple[str, bool]]]:
    """The training text: an endless stream of rendered conversations."""
    random = Random(f"{seed} turns")
    for example in examples(seed, excluded):
        users, replies = turns(example, random)
        yield rendered(users, replies, SYSTEM if random.random() < 0.05 else "")

"""From examples to training text: the harness's own prompts, the answers its scorers expect, and the chat template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from specforge.datasets.definition import Question
from specforge.datasets.registry import definitions
from tools.pair.example import Example
from tools.pair.families import choices, dialogues, programs, sums
from tools.pair.holdout import identities

END, PAD = "<|end|>", "<|endoftext|>"
ROLES = ("system", "user", "assistant")
SPECIAL_TOKENS = (PAD, *(f"<|{role}|>" for role in ROLES), END)
"""The first ids of the vocabulary, in this order."""
PAD_ID = SPECIAL_TOKENS.index(PAD)
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SYSTEM = "You are a helpful assistant."

Mixture = Mapping[Callable[[Random], Example], float]
"""Families with their weights in a text."""
TAUGHT: Mixture = {
    sums.story: 0.40,
    sums.drill: 0.24,
    sums.problem: 0.08,
    sums.contest: 0.04,
    programs.stub: 0.06,
    programs.in_words: 0.03,
    programs.contest: 0.02,
    choices.general: 0.05,
    choices.chinese: 0.05,
    choices.science: 0.02,
    dialogues.conversation: 0.09,
    dialogues.chat: 0.02,
    dialogues.fact: 0.01,
    dialogues.finance: 0.02,
}
"""What the target learns from: mostly sums, which take it longest."""
FORESEEN: Mixture = {
    sums.story: 0.24,
    sums.drill: 0.02,
    sums.problem: 0.06,
    sums.contest: 0.06,
    programs.stub: 0.10,
    programs.in_words: 0.08,
    programs.contest: 0.07,
    choices.general: 0.10,
    choices.chinese: 0.06,
    choices.science: 0.05,
    dialogues.conversation: 0.20,
    dialogues.chat: 0.03,
    dialogues.fact: 0.03,
    dialogues.finance: 0.04,
}
"""What the head learns to foresee: every dataset, for their answers are of many kinds and short."""
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


@dataclass(frozen=True)
class Conversation:
    """The user's turns and the assistant's replies to them, after a system message that may be empty."""

    users: tuple[str, ...]
    replies: tuple[str, ...]
    system: str = ""

    def asked(self, turn: int) -> str:
        """What the chat template makes of the user's turn, up to where the reply begins."""
        opening = f"<|system|>{self.system}{END}" if self.system and turn == 0 else ""
        return f"{opening}<|user|>{self.users[turn]}{END}<|assistant|>"

    def pieces(self) -> list[tuple[str, bool]]:
        """The whole conversation under the chat template, as (text, whether the model is to say it)."""
        found: list[tuple[str, bool]] = []
        for turn, reply in enumerate(self.replies):
            found += [(self.asked(turn), False), (f"{reply}{END}", True)]
        return found


def harness_question(dataset: str, row: Mapping[str, Any]) -> Question:
    """The row as the harness asks it."""
    return definitions()[dataset].question(row)


def conversation(example: Example, random: Random) -> Conversation:
    """The example as the harness asks it, or now and then without its instruction, as somebody at a prompt would."""
    bare = plain(example)
    if bare and (example.dataset == "chat" or random.random() < UNINSTRUCTED):
        return Conversation(*bare, system=SYSTEM if random.random() < 0.1 else "")
    question = harness_question(example.dataset, example.row)
    assert isinstance(question.content, str)
    letter = getattr(question.reference, "letter", question.reference)
    return Conversation((question.content, *question.followups), answered(example, str(letter)), question.system)


def examples(seed: Any, excluded: frozenset[str], mixture: Mixture = TAUGHT) -> Iterator[Example]:
    """An endless stream of examples, none of which asks what is excluded."""
    random = Random(seed)
    families, weights = zip(*mixture.items(), strict=True)
    while True:
        example = random.choices(families, weights)[0](random)
        if excluded.isdisjoint(identities(example.dataset, example.row)):
            yield example


def conversations(seed: Any, excluded: frozenset[str], mixture: Mixture = TAUGHT) -> Iterator[Conversation]:
    """The training text: an endless stream of conversations."""
    random = Random(f"{seed} turns")
    for example in examples(seed, excluded, mixture):
        yield conversation(example, random)

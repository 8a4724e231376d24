"""The built-in samples are in no training text."""

from __future__ import annotations

from itertools import islice

from tools.pair.conversation import conversations, examples
from tools.pair.holdout import held_out, identities, sample_rows

READ = 4000


def test_no_training_example_asks_what_a_sample_asks() -> None:
    excluded = held_out()
    asked = [identities(made.dataset, made.row) for made in islice(examples("test", excluded), READ)]
    assert [names for names in asked if not excluded.isdisjoint(names)] == []


def test_the_hold_out_is_needed_since_the_families_would_ask_samples() -> None:
    excluded = held_out()
    asked = [identities(made.dataset, made.row) for made in islice(examples("test", frozenset()), READ)]
    assert any(not excluded.isdisjoint(names) for names in asked)


def test_no_training_text_has_a_sample_story_in_it() -> None:
    stories = [row["question"] for dataset, row in sample_rows() if dataset == "gsm8k"]
    text = "\n".join(
        user for conversation in islice(conversations("test", held_out()), READ) for user in conversation.users
    )
    assert [story for story in stories if story in text] == []


def test_other_options_do_not_make_it_another_question() -> None:
    dataset, row = next((dataset, row) for dataset, row in sample_rows() if dataset == "mmlu")
    assert identities(dataset, {**row, "choices": row["choices"][::-1]}) == identities(dataset, row)

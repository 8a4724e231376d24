from __future__ import annotations

import pytest

from specforge.scoring.text import boxes, ending, last_box, plain, visible


@pytest.mark.parametrize(
    "text,seen",
    [
        ("<think>no</think>yes", "yes"),
        ("no</think>yes", "yes"),
        ("<think>never done", ""),
        ("<think></think>\n\nyes<|im_end|>", "yes"),
        ("yes</s>", "yes"),
        ("a < b and c > d", "a < b and c > d"),
    ],
)
def test_only_what_a_reader_sees_is_visible(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.mark.parametrize(
    "text,folded",
    [
        ("−5 – 3", "-5 - 3"),
        ("１２ＡＢ（Ｃ）：", "12AB(C):"),
        ("m² and 10¹²", "m^2 and 10^{12}"),
        ("70\u202f000 and 1\u00a0234", "70,000 and 1,234"),
        ("ﬁve", "five"),
    ],
)
def test_spellings_of_the_same_character_are_folded(text: str, folded: str) -> None:
    assert plain(text) == folded


def test_an_escaped_brace_closes_no_box() -> None:
    assert [box.content for box in boxes(r"\boxed{a \} b} \boxed{c}")] == [r"a \} b", "c"]


def test_a_box_within_a_box_is_part_of_it() -> None:
    assert [box.content for box in boxes(r"\boxed{\boxed{5}}")] == [r"\boxed{5}"]


def test_boxes_in_different_sentences_are_not_one_list() -> None:
    box = last_box(r"We get \boxed{2} for the first part, which is small, and for the second part \boxed{3}")
    assert box is not None
    assert box.content == "3"


def test_an_answer_is_looked_for_near_the_end() -> None:
    assert ending("x" * 100_000 + "end").endswith("end")
    assert len(ending("x" * 100_000)) < 100_000

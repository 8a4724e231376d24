from __future__ import annotations

import pytest

from specforge.scoring.short import judge


@pytest.mark.parametrize(
    "reference,output",
    [
        ("Vienna", "The capital of Austria is Vienna."),
        ("Vienna", "Answer: **Vienna**"),
        ("The Beatles", "beatles"),
        ("José Martí", "Jose Marti"),
        ("Queen's College", "Queens College"),
        ("120,000", "It had 120000 people."),
        ("1987", "In 1987, he moved."),
        ("21 March 1990", "It was on March 21st, 1990."),
        ("U.S. Navy", "the US Navy"),
        ("Vienna", "<think>Paris?</think>Vienna"),
        ("Vienna", "\\boxed{\\text{Vienna}}"),
    ],
)
def test_the_reference_in_another_spelling_is_right(reference: str, output: str) -> None:
    correct, answer, reason = judge(output, reference)
    assert correct, (answer, reason)


@pytest.mark.parametrize(
    "reference,output",
    [
        ("Vienna", "Answer: Paris\n\nNot Vienna."),
        ("Paris", "It is not Paris."),
        ("21 March 1990", "It was on March 22, 1990."),
        ("5", "There were 15 of them."),
        ("Ann", "Annabel"),
        ("North Korea", "Korea, in the North"),
    ],
)
def test_another_answer_is_wrong(reference: str, output: str) -> None:
    assert judge(output, reference)[0] is False


@pytest.mark.parametrize("output", ["", "I don't know.", "<think>Vienna", "I'm not sure who that was."])
def test_no_attempt_is_no_answer(output: str) -> None:
    assert judge(output, "Vienna")[:2] == (False, None)

from __future__ import annotations

import pytest

from specforge.scoring.finance import judge


@pytest.mark.parametrize(
    "reference,output",
    [
        ("$82 million", "Answer: $82 million"),
        ("$82 million", "Answer: 82"),
        ("$82 million", "Answer: 82,000,000"),
        ("$82 million", "Answer: $82.1M"),
        ("1.2 billion", "Answer: $1,200 million"),
        ("€5 bn", "Answer: 5 billion euros"),
        ("12.5%", "Answer: 12.5 percent"),
        ("12.5%", "Answer: 0.125"),
        ("(3.2)", "Answer: -3.2"),
        ("-3.2", "Answer: (3.2)"),
        ("-5%", "Answer: a decrease of 5%"),
        ("2.5x", "Answer: 2.5"),
        ("$9,453", "The total debt in 2023 was $9,453."),
        ("45 days", "Answer: 21 + 24 = 45 days"),
        ("Net income", "Answer: net income"),
    ],
)
def test_the_same_figure_in_another_form_is_right(reference: str, output: str) -> None:
    correct, answer, reason = judge(output, reference)
    assert correct, (answer, reason)


@pytest.mark.parametrize(
    "reference,output",
    [
        ("$82 million", "Answer: $82 thousand"),
        ("$82 million", "Answer: $85 million"),
        ("12.5%", "Answer: 13%"),
        ("12.5%", "Answer: 1.25%"),
        ("(3.2)", "Answer: 3.2"),
        ("-5%", "Answer: 5%"),
        ("Net income", "Answer: revenue"),
        ("45 days", "Answer: in 2023"),
    ],
)
def test_another_figure_is_wrong(reference: str, output: str) -> None:
    assert judge(output, reference)[0] is False


@pytest.mark.parametrize("output", ["", "I don't know", "Answer: it rose"])
def test_no_figure_is_no_answer(output: str) -> None:
    assert judge(output, "$5 million")[:2] == (False, None)

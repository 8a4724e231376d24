from __future__ import annotations

from fractions import Fraction

import pytest

from specforge.errors import DatasetError
from specforge.scoring.number import NumberScorer, find_number, judge
from specforge.scoring.numbers import numbers, only_number, shown
from specforge.scoring.score import Answer


@pytest.mark.parametrize(
    "text,value",
    [
        ("18", 18),
        ("$18.00", 18),
        ("-$5", -5),
        ("$-5", -5),
        ("−5", -5),
        ("１８", 18),
        ("1,200", 1200),
        ("1{,}200", 1200),
        (r"10,\!080", 10080),
        ("70\u202f000", 70000),
        (".5", Fraction(1, 2)),
        ("3 1/2", Fraction(7, 2)),
        ("3/4", Fraction(3, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"-\frac{3}{4}", Fraction(-3, 4)),
        ("1.2 × 10^3", 1200),
        (r"1.2 \times 10^{-3}", Fraction(12, 10000)),
        ("1e3", 1000),
        ("2.5 million", 2_500_000),
        ("5%", 5),
    ],
)
def test_a_number_is_read_however_it_is_written(text: str, value: Fraction) -> None:
    number = only_number(text)
    assert number is not None
    assert number.value == value


@pytest.mark.parametrize("text", ["", "five", "12:00", "1.2.3", "x2", "5 apples", "1/0", "7" * 5000, "1e400000"])
def test_what_is_no_single_number_is_none(text: str) -> None:
    assert only_number(text) is None


@pytest.mark.parametrize(
    "text,values",
    [("16-3", [16, 3]), ("10 - 5", [10, 5]), ("from -3 to +4", [-3, 4]), ("- 5 apples", [5]), ("x2 2^3", [2])],
)
def test_a_minus_between_operands_is_no_sign(text: str, values: list[int]) -> None:
    assert [number.value for number in numbers(text)] == values


@pytest.mark.parametrize("value,text", [(Fraction(18), "18"), (Fraction(7, 2), "3.5"), (Fraction(1, 3), "1/3")])
def test_a_value_is_shown_exactly(value: Fraction, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    "output,reference",
    [
        ("She makes $18.00 every day.", "18"),
        (r"\boxed{18}" + "\n\n(That is 9 eggs at $2 each.)", "18"),
        (r"\boxed{\$18.00}", "18"),
        (r"\boxed{18\text{ eggs}}", "18"),
        (r"\boxed{- 5}", "-5"),
        (r"\boxed{\frac{36}{2}}", "18"),
        ("9 * 2 = 18\n#### 18", "18"),
        ("#### $1,200.00 (in all)", "1200"),
        ("The answer is 18 (9 eggs at $2).", "18"),
        ("Answer: 9 * 2 = 18 dollars", "18"),
        ("Answer:\n\n**18**", "18"),
        ("**Answer:** 1,234.50", "1234.5"),
        ("答案是18。", "18"),
        ("Respuesta: 18", "18"),
        ("The profit is **$70,000**.", "70000"),
        ("The total is **18** eggs, out of 20.", "18"),
        ("**Step 3:** add 12 and 8 to get 20.", "20"),
        ("the range is 5-10", "10"),
        ("x² = 49", "49"),
        ("Each bottle holds 12 300 ml", "300"),
        ("At first I thought the answer is 20. The answer is 18. If she sold all, the answer would be 32.", "18"),
        ("<think>maybe 20</think>18", "18"),
        ("18 " * 40000, "18"),
    ],
)
def test_the_number_that_is_meant_is_found(output: str, reference: str) -> None:
    correct, answer, reason = judge(output, reference)
    assert correct, (answer, reason)


@pytest.mark.parametrize(
    "output,answer",
    [
        ("The change is 5 degrees.", "5"),
        ("I do not know.", None),
        ("", None),
        ("   \n", None),
        ("<think>18", None),
        (r"\boxed{18", None),
        (r"First \boxed{-5}, then \boxed{", None),
        (r"\boxed{\text{no}} 5", None),
        ("5" * 5000, None),
        ("\u200b", None),
    ],
)
def test_a_wrong_or_missing_number_is_wrong(output: str, answer: str | None) -> None:
    assert judge(output, "-5")[:2] == (False, answer)


def test_the_reason_says_where_the_number_stood() -> None:
    assert find_number("12, so 7")[1] == "the last number"
    assert find_number("#### 7")[1] == "after ####"


def test_a_reference_that_is_no_number_is_the_datasets_fault() -> None:
    with pytest.raises(DatasetError, match="the reference 'five' is not a number"):
        judge("5", "five")


def test_a_truncated_or_failed_answer_is_wrong_whatever_its_text() -> None:
    answers = [
        Answer("a", "18", ("#### 18",)),
        Answer("b", "18", ("#### 18",), truncated=True),
        Answer("c", "18", (), failed=True),
    ]
    scores = NumberScorer().score_all(answers)
    assert [(score.correct, score.answer) for score in scores] == [(True, "18"), (False, "18"), (False, None)]
    assert "cut at the token limit" in scores[1].reason
    assert scores[2].reason == "the request failed"

from __future__ import annotations

import pytest

from specforge.scoring.math.extract import find_answer


@pytest.mark.parametrize(
    "output,answer",
    [
        (r"\[ \boxed{\frac{1}{2}} \]", r"\frac{1}{2}"),
        (r"$\boxed{\left\{x \mid x = \frac{1}{\sqrt{2}}\right\}}$", r"\left\{x \mid x = \frac{1}{\sqrt{2}}\right\}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\text{a } brace \} \text{ escaped}}", r"\text{a } brace \} \text{ escaped}"),
        (r"\fbox{5}", "5"),
        (r"or $\framebox{204}$ minutes", "204"),
        (r"\boxed 5", "5"),
        (r"\boxed{12} at first. No: \boxed{204}.", "204"),
        (r"first \boxed{2}." + "\n\n" + r"then \boxed{3}", "3"),
        (r"$x=\boxed{2}$ or $x=\boxed{3}$", "2, 3"),
        (r"$\boxed{2}$ and $\boxed{3}$", "2, 3"),
        (r"\boxed{5} " * 3000, "5"),
        ("\\boxed{73}\n\nNote that \\boxed is used.", "73"),
    ],
)
def test_the_last_box_is_found_by_its_braces(output: str, answer: str) -> None:
    assert find_answer(output) == (answer, "boxed")


@pytest.mark.parametrize(
    "output,reason",
    [
        (r"First \boxed{5}. Then \boxed{7", "the last box is cut off"),
        ("\\boxed{" * 5000, "the last box is cut off"),
        (r"\boxed{}", "the last box is empty"),
        ("", "empty output"),
        (r"<think> so \boxed{5}", "empty output"),
        ("I am unable to answer.", "no answer"),
    ],
)
def test_no_earlier_text_takes_the_place_of_a_missing_answer(output: str, reason: str) -> None:
    assert find_answer(output) == (None, reason)


@pytest.mark.parametrize(
    "output,answer",
    [
        ("Final Answer: The final answer is $12$. I hope it is correct.", "12"),
        ("The final answer is $x = 5$, since $x>0$.", "x = 5"),
        ("**Final Answer**\n\n73", "73"),
        ("✅ Final Answer: **73**", "73"),
        (r"**Answer:** \(\dfrac{14}{3}\)", r"\dfrac{14}{3}"),
        ("Answer: 5 apples, because 3+2", "5 apples"),
        ("The answer is 3/4.", "3/4"),
        ("答案是7。", "7"),
        ("I first thought the answer is 8. The answer is 9, as shown. If x were 0, the answer would be 1.", "9"),
    ],
)
def test_without_a_box_the_stated_answer_is_taken(output: str, answer: str) -> None:
    found, where = find_answer(output)
    assert where == "stated as the answer"
    assert (found or "").split(",")[0] == answer


@pytest.mark.parametrize(
    "output,answer",
    [
        ("So the walk takes 204 minutes.", "204"),
        (r"Therefore $x=\frac{14}{3}$.", r"x=\frac{14}{3}"),
        ("First 7.\n\nThe total is **12** of 20.", "12"),
        ("The point is $(1,2)$.", "(1,2)"),
    ],
)
def test_without_a_statement_the_last_paragraph_is_read(output: str, answer: str) -> None:
    assert find_answer(output)[0] == answer


def test_what_was_thought_is_not_the_answer() -> None:
    assert find_answer(r"<think>\boxed{4}</think> It is \boxed{5}.") == ("5", "boxed")
    assert find_answer(r"\boxed{4}</think> It is \boxed{5}.") == ("5", "boxed")

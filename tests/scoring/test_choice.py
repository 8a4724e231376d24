from __future__ import annotations

import pytest

from specforge.scoring.choice import ChoiceReference, ChoiceScorer, find_letter, judge
from specforge.scoring.score import Answer

FORMS = [
    "Answer: {}",
    "**Answer: {}**",
    "**Answer:** {}",
    "Answer: **{}**",
    "Answer: ({})",
    "Answer: [{}]",
    "Answer: {}.",
    "Answer: {}) the third one",
    "Answer: {}. the third one",
    "Answer:{}",
    "Answer:\n\n**{}**",
    "ANSWER: {}",
    "Answer is {}",
    "Answer - {}",
    "[Answer] {}",
    "Answer: $\\boxed{{{}}}$",
    "Final Answer: \\(\\boxed{{\\mathbf{{{}}}}}\\)",
    "The answer is {}.",
    "The answer is ({}).",
    "The answer is **{}. the third one**.",
    "The answer is option {}",
    "The answer is therefore {}.",
    "The answer to the question is {}.",
    "The correct answer is: {}",
    "The correct option is ({}).",
    "The best choice here would be {}",
    "Thus, answer {}.",
    "The answer is\n\n\\[\n\\boxed{{{}}}\n\\]",
    "\\boxed{{{}}}",
    "$\\boxed{{\\text{{{}}}}}$",
    "\\boxed{{\\text{{({})}}}}",
    "\\boxed{{{}. the third one}}",
    "{}",
    "({})",
    "{}.",
    "{}) the third one",
    "**{}**",
    "\\textbf{{{}}}",
    "I choose {}.",
    "I'd go with {}",
    "My guess is {}",
    "So it must be {}.",
    "Option {} is correct.",
    "{} is the correct answer.",
    '{{"answer": "{}"}}',
    "Antwort: {}",
    "Respuesta: {}",
    "Ответ: {}",
    "答案是{}。",
    "答案：{}",
    "【答案】{}",
    "正确答案为（{}）",
    "正确选项是{}",
    "因此，答案应为 {} 选项",
    "故选{}。",
    "我选择{}",
    "选项{}正确",
    "答案不是A，而是{}。",
    "The answer is not A but {}.",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("letter", ["B", "C", "D"])
def test_a_letter_is_found_however_it_is_stated(form: str, letter: str) -> None:
    assert find_letter(form.format(letter))[0] == letter


@pytest.mark.parametrize(
    "form", [form for form in FORMS if "A" not in form.replace("Answer", "").replace("ANSWER", "")]
)
def test_the_letter_a_is_found_as_well(form: str) -> None:
    assert find_letter(form.format("A"))[0] == "A"


@pytest.mark.parametrize("letter", ["Ａ", "Ｂ"])
def test_full_width_letters_count(letter: str) -> None:
    assert find_letter(f"答案：{letter}")[0] == {"Ａ": "A", "Ｂ": "B"}[letter]


@pytest.mark.parametrize(
    "output,letter",
    [
        # other letters around the stated one
        ("The answer is B. Note that A is a common distractor.", "B"),
        ("I considered (A), but it fails. Final answer: D.", "D"),
        ("选项A和B都不对，因此答案是D。", "D"),
        ("The answer is D) because A) and B) fail.", "D"),
        ("Answer: B, A is wrong", "B"),
        ("The answer is A and B is wrong", "A"),
        ("The answer is C, not A.", "C"),
        ("(a) wrong (b) wrong (c) right. Answer: (c)", "C"),
        # changes of mind, and what was only weighed
        ("The answer is A. Wait, that is wrong. The answer is B.", "B"),
        ("I initially thought the answer was A, but the correct answer is C.", "C"),
        ("The answer is C. If the question had asked for X, the answer would be A.", "C"),
        ("The answer is D. I do not think the answer is B.", "D"),
        ("Answer: B\n\nThe answer is not A because it fails.", "B"),
        ("If we use F=ma, the answer is B.", "B"),
        ("I choose C. If we dropped the sign, I would choose B.", "C"),
        ("Maybe the answer is A. Computing it, \\boxed{C}", "C"),
        ("Answer: A\nAnswer: B\nAnswer: C", "C"),
        # formulas and words that are no letters
        ("Perturbation holds when \\boxed{\\langle H\\rangle \\ll E}.\n\n**Answer: D**", "D"),
        ("The answer is B because a car moves.", "B"),
        ("Answer: A because B fails", "A"),
        ("<think>Maybe Answer: A. Hmm, no.</think>\nAnswer: C", "C"),
        ("Answer: A</think>Answer: B", "B"),
        ("**A)** is too small.\n**B)** is too large.\n\n**C)**", "C"),
        ("B\n\nSince the others fail.", "B"),
        ("So, the answer is:\n\n**C. the third one**", "C"),
    ],
)
def test_the_stated_letter_wins_over_others(output: str, letter: str) -> None:
    assert find_letter(output)[0] == letter


@pytest.mark.parametrize(
    "output",
    [
        "",
        "  \n ",
        "I cannot decide between them.",
        "A car moves faster than a bicycle.",
        "Answer: A car moves",
        "Answer: I do not know",
        "Vitamin C is involved.",
        "Let A be a set. The result is a contradiction.",
        "A. red\nB. blue\nC. green\nD. white",
        "**A.** too small\n**B.** too large",
        "Answer: A and C",
        "Answer: A, B",
        "Answer: A or B",
        "The correct answers are B, C and D.",
        "Answer: $LETTER",
        "Answer: ABCD",
        "Answer: E",
        "Answer: none of the above",
        "The answer is not B.",
        "Answer: B = 3 T",
        "First \\boxed{A}. Better: \\boxed{C",
        "<think>Answer: A",
        "I do not think B is correct.",
        "I am not sure whether B is the answer.",
        "Answer: " * 20000,
        "答案是",
    ],
)
def test_no_letter_is_made_up(output: str) -> None:
    assert find_letter(output)[0] is None


OPTIONS = ("Prostaglandins", "Inositol triphosphate", "None of the above", "4")


@pytest.mark.parametrize(
    "output,letter",
    [
        ("Inositol triphosphate", "B"),
        ("Answer: inositol triphosphate.", "B"),
        ("Answer: **None of the above**", "C"),
        ("\\boxed{4}", "D"),
        ("Answer: Calmodulin", None),
    ],
)
def test_an_options_text_word_for_word_is_its_letter(output: str, letter: str | None) -> None:
    assert find_letter(output, OPTIONS)[0] == letter


def test_only_the_letters_of_the_options_count() -> None:
    assert find_letter("Answer: E", ("",) * 5)[0] == "E"
    assert find_letter("Answer: C", ("",) * 2)[0] is None


def test_the_verdict_compares_with_the_reference() -> None:
    assert judge("Answer: B", ChoiceReference("B")) == (True, "B", "stated as the answer; reference B")
    assert judge("Answer: B", ChoiceReference("C")) == (False, "B", "stated as the answer; reference C")


def test_a_truncated_answer_is_wrong() -> None:
    (score,) = ChoiceScorer().score_all([Answer("row", ChoiceReference("B"), ("Answer: B",), truncated=True)])
    assert (score.correct, score.answer) == (False, "B")

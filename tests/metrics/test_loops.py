from __future__ import annotations

import pytest

from specforge.metrics.loops import find_loop, is_loop

SENTENCE = "The answer is therefore the same as the one that was given above. "
PARAGRAPH = (
    "First, we find the number of apples that remain after the first day. Then we find how many are sold on the "
    "second day, and subtract them. Finally, we multiply what remains by the price of a single apple. "
)
INTRO = "Let us think about this step by step. The farm has 12 cows and each of them gives 4 litres a day.\n"

COUNTING = ", ".join(str(n) for n in range(1, 400))
TIMES_TABLE = "\n".join(f"{a} x {b} = {a * b}" for a in range(1, 13) for b in range(1, 13))
MARKDOWN_TABLE = "| year | price | sold |\n| --- | --- | --- |\n" + "\n".join(
    f"| {1990 + i} | {3 + i % 4}.50 | {100 + 7 * i} |" for i in range(40)
)
EMPTY_TABLE = "| day | task |\n| --- | --- |\n" + "|     |      |\n" * 14
CODE = "\n".join(
    f"def test_case_{name}():\n    assert solve({index}) == {index * index}\n"
    for index, name in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight"])
)
GRID = "[\n" + "    [0, 0, 0, 0, 0, 0, 0, 0],\n" * 8 + "]"
PRINTS = "```python\n" + 'print("hello")\n' * 20 + "```"
HTML = "<table>\n" + "".join(f"  <tr><td>{n}</td><td>{n * n}</td></tr>\n" for n in range(40)) + "</table>"
REFRAIN = "Row, row, row your boat, gently down the stream. " * 4 + "Merrily, merrily, merrily, life is but a dream."
RULER = "Results\n" + "=" * 80 + "\nAll good.\n" + "-" * 80
ACROSTIC = "ha" * 60
MODULAR = " + ".join("1" for _ in range(60)) + " = 60"


@pytest.mark.parametrize(
    "text",
    [
        INTRO + SENTENCE * 30,
        INTRO + SENTENCE * 30 + SENTENCE[:17],
        INTRO + PARAGRAPH * 5,
        "!" * 400,
        INTRO + "\n" * 300,
        INTRO + "no " * 120,
        INTRO + "我们可以看到这个问题的答案是四。" * 20,
        INTRO + "| | | " * 120,
        INTRO + "".join(f"{n}. I would like to know more about the history of the town.\n" for n in range(1, 30)),
    ],
    ids=["sentence", "broken-off", "paragraph", "one-sign", "newlines", "word", "chinese", "cells", "numbered"],
)
def test_a_loop_that_the_token_limit_cut_is_found(text: str) -> None:
    assert is_loop(text, truncated=True)


@pytest.mark.parametrize(
    "text", [INTRO + SENTENCE * 30, SENTENCE * 40 + "\n", INTRO + SENTENCE * 40 + "So it is 4. That is the end."]
)
def test_a_long_loop_is_found_in_an_answer_that_ended_by_itself(text: str) -> None:
    assert is_loop(text)


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        COUNTING,
        TIMES_TABLE,
        MARKDOWN_TABLE,
        EMPTY_TABLE + "Fill in the rest.",
        CODE,
        GRID,
        PRINTS,
        HTML,
        REFRAIN,
        RULER,
        MODULAR,
        INTRO,
        "",
    ],
)
def test_honest_repetition_is_no_loop(text: str, truncated: bool) -> None:
    assert not is_loop(text, truncated=truncated)


@pytest.mark.parametrize("text", [EMPTY_TABLE, ACROSTIC, 'print("hello")\n' * 10])
def test_a_short_exact_repetition_that_ends_by_itself_is_no_loop(text: str) -> None:
    assert not is_loop(text)


def test_the_stretch_names_the_repeated_unit() -> None:
    text = INTRO + SENTENCE * 30
    stretch = find_loop(text, truncated=True)
    assert stretch is not None
    assert stretch.period == len(SENTENCE)
    assert stretch.repeats == pytest.approx(30, abs=0.1)
    assert text[stretch.end - stretch.period : stretch.end] == SENTENCE


def test_the_smallest_unit_is_the_one_reported() -> None:
    stretch = find_loop("ab" * 300, truncated=True)
    assert stretch is not None
    assert stretch.period == 2

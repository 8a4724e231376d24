"""The generator's text: its sums are right, its programs pass their tests, its choices name the right letter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import islice
from random import Random

import pytest

from specforge.datasets.registry import definitions
from tools.pair.conversation import answered, conversations, examples, harness_question
from tools.pair.example import Example
from tools.pair.families import choices, dialogues, programs, sums

MADE = 150


def made(family: object, count: int = MADE) -> list[Example]:
    random = Random(str(family))
    return [family(random) for _ in range(count)]  # type: ignore[operator]


def holds(left: str, right: str) -> bool:
    """Whether an equation of the working is true: one or two operations on whole numbers, products first."""
    numbers = [int(number) for number in re.findall(r"\d+", left)]
    signs = re.findall(r"[+*/-]", left)
    while signs:
        at = next((index for index, sign in enumerate(signs) if sign in "*/"), 0)
        a, b = numbers[at : at + 2]
        if signs[at] == "/":
            if a % b:
                return False
            value = a // b
        else:
            value = {"+": a + b, "-": a - b, "*": a * b}[signs[at]]
        numbers[at : at + 2] = [value]
        del signs[at]
    return numbers == [int(right)]


def equations(text: str) -> list[tuple[str, str]]:
    """The equations ``a + b = c`` of a text, and, turned around, those of the form ``a = b * c + d``."""
    forward = re.findall(r"(\d+(?: [+*/-] \d+)+) = (\d+)(?! [+*/-])", text)
    backward = re.findall(r"(?<![+*/-] )\b(\d+) = (\d+(?: [+*/-] \d+)+)", text)
    return forward + [(right, left) for left, right in backward]


@pytest.mark.parametrize("family", [sums.story, sums.problem, sums.contest, dialogues.finance, choices.science])
def test_every_equation_of_the_working_is_true(family: object) -> None:
    found = [equation for example in made(family) for equation in equations(example.working[0])]
    assert len(found) > MADE / 2
    assert [equation for equation in found if not holds(*equation)] == []


def test_a_story_ends_with_the_number_that_its_answer_is() -> None:
    for example in made(sums.story):
        assert re.findall(r"= (\d+)", example.working[0])[-1] == example.answer
        assert example.row["answer"].endswith(f"#### {example.answer}")


@pytest.mark.parametrize("family", [choices.general, choices.chinese, choices.science])
def test_the_options_are_four_different_ones_and_the_letter_is_the_right_one(family: object) -> None:
    for example in made(family):
        reference = harness_question(example.dataset, example.row).reference
        letter = getattr(reference, "letter", reference)
        options = getattr(reference, "options", None) or example.row["choices"]
        assert len(set(options)) == 4
        right = options["ABCD".index(letter)]
        assert right in example.working[0]
        assert answered(example, letter)[0].endswith(letter)


def program_checks(example: Example) -> str:
    """A Python program that fails unless the example's program passes the row's own tests."""
    row, program = example.row, example.working[0]
    if example.dataset == "humaneval":
        completed = f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\ncheck({row['entry_point']})\n"
        return f"{completed}{program}\ncheck({row['entry_point']})\n"
    return "\n".join([program, *row["test_list"]]) + "\n"


@pytest.mark.parametrize("family", [programs.stub, programs.in_words])
def test_programs_pass_the_tests_of_their_rows(family: object) -> None:
    together = "\n".join(program_checks(example) for example in made(family))
    done = subprocess.run([sys.executable, "-I", "-"], input=together, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def test_contest_programs_print_or_return_what_their_tests_expect() -> None:
    script = ["import io, json, sys"]
    for example in made(programs.contest):
        row, program = example.row, example.working[0]
        tests = json.loads(row["public_test_cases"]) + json.loads(row["private_test_cases"])
        name = json.loads(row["metadata"]).get("func_name")
        if name:
            script.append(program)
        for test in tests:
            if name:
                arguments = ", ".join(repr(json.loads(line)) for line in test["input"].split("\n"))
                script.append(f"assert Solution().{name}({arguments}) == json.loads({test['output']!r})")
            else:
                script += [f"sys.stdin, sys.stdout = io.StringIO({test['input']!r}), io.StringIO()", program]
                script.append(f"assert sys.stdout.getvalue() == {test['output']!r}")
    together = "\n".join(script)
    done = subprocess.run([sys.executable, "-I", "-"], input=together, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def test_every_dataset_that_has_no_pictures_is_in_the_training_text() -> None:
    trained = {example.dataset for example in islice(examples(1, frozenset()), 3000)}
    assert trained - {"chat"} == {name for name in definitions() if name != "mmstar"}


def test_the_training_text_is_the_same_for_the_same_seed_alone() -> None:
    first, again, other = (list(islice(conversations(seed, frozenset()), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other

"""LiveCodeBench (Jain et al. 2024): contest problems by release, solved by a program or a method."""

from __future__ import annotations

from specforge.datasets.definition import DatasetDefinition, HubPart, Question, Row, SubsetAxis
from specforge.scoring.code.livecode import livecode_task

# LiveCodeBench's own prompt for chat models.
SYSTEM = (
    "You are an expert Python programmer. You will be given a question (problem specification) and will generate a "
    "correct Python program that matches the specification and passes all tests."
)
WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your code within "
    "delimiters."
)
WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample "
    "inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the "
    "inputs, runs the algorithm and writes output to STDOUT."
)

RELEASES = 6
FILES = {f"v{number}": f"test{number if number > 1 else ''}.jsonl" for number in range(1, RELEASES + 1)}


def question(row: Row) -> Question:
    """The problem, and the starter code where a method is asked for; results are reported by difficulty."""
    starter = str(row.get("starter_code") or "").strip()
    form, block = (WITH_STARTER, starter) if starter else (WITHOUT_STARTER, "# YOUR CODE HERE")
    return Question(
        f"### Question:\n{str(row['question_content']).strip()}\n\n### Format: {form}\n```python\n{block}\n```\n\n"
        "### Answer: (use the provided format with backticks)",
        reference=livecode_task(
            str(row["public_test_cases"]),
            str(row["private_test_cases"]),
            str(row.get("metadata") or ""),
            str(row["question_id"]),
        ),
        system=SYSTEM,
        category=str(row.get("difficulty") or ""),
    )


DATASET = DatasetDefinition(
    name="livecodebench",
    # The repository is a loading script over these files, which datasets 4 and later does not run.
    parts=tuple(
        HubPart("livecodebench/code_generation_lite", "test", files=(file,), label=release)
        for release, file in FILES.items()
    ),
    question=question,
    row_id=lambda row: str(row["question_id"]),
    columns=("question_id", "question_content", "public_test_cases", "private_test_cases"),
    scorer="code",
    max_new_tokens=32768,
    axes=(
        SubsetAxis("difficulty", lambda row: str(row.get("difficulty") or ""), ("easy", "medium", "hard")),
        SubsetAxis(
            "release",
            lambda row: str(row.get("release") or ""),
            tuple(FILES),
            # A release holds what the ones before it held; vN is only what it added.
            groups={
                f"release_v{last}": tuple(f"v{number}" for number in range(1, last + 1))
                for last in range(1, RELEASES + 1)
            },
            default=(f"v{RELEASES}",),
            labelled=True,
        ),
    ),
    aliases=("lcb",),
)

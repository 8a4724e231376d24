"""Scores by a judge model: grades for conversations, and verdicts on short answers.

The judge is a function from messages to a reply, so that this module knows no wire; its prompts and replies are kept in
the score's details. A judge that fails or answers in another form gives no verdict, never a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from specforge.errors import SpecForgeError
from specforge.scoring.score import Answer, Score
from specforge.scoring.text import visible

Complete = Callable[[Sequence[Mapping[str, Any]]], str]
"""Sends chat messages to the judge and gives its reply. Raises SpecForgeError where it can't."""

# MT-Bench's own single-answer grading prompts (Zheng et al. 2023; FastChat's single-v1, single-math-v1 and their
# multi-turn forms), slips included: grades of other prompts would not be MT-Bench grades.
_SYSTEM = "You are a helpful assistant."
_TASK = (
    "Please act as an impartial judge and evaluate the quality of the response provided by an AI assistant to the user "
    "question"
)
_FACTORS = (
    "Your evaluation should consider factors such as the helpfulness, relevance, accuracy, depth, creativity, and "
    "level of detail of the response. "
)
_CORRECTNESS = (
    "Your evaluation should consider correctness and helpfulness. You will be given a reference answer and the "
    "assistant's answer. "
)
_START = "Begin your evaluation by providing a short explanation. "
_START_COMPARING = (
    "Begin your evaluation by comparing the assistant's answer with the reference answer. "
    "Identify and correct any mistakes. "
)
_RATE = (
    "Be as objective as possible. After providing your explanation, you must rate the response on a scale of 1 to 10 "
    'by strictly following this format: "[[rating]]", for example: "Rating: [[5]]".'
)
_FIRST_TURN = f"{_TASK} displayed below. {_FACTORS}{_START}{_RATE}"
_FIRST_TURN_COMPARING = f"{_TASK} displayed below. {_CORRECTNESS}{_START_COMPARING}{_RATE}"
_SECOND_TURN = (
    f"{_TASK} displayed below. {_FACTORS}You evaluation should focus on the assistant's answer to the second user "
    f"question. {_START}{_RATE}"
)
_SECOND_TURN_COMPARING = (
    f"{_TASK}. {_CORRECTNESS}You evaluation should focus on the assistant's answer to the second question. "
    f"{_START_COMPARING}{_RATE}"
)
_RATING = re.compile(r"\[\[\s*(\d+(?:\.\d+)?)\s*\]\]|\bRating:\s*\**\[?\s*(\d+(?:\.\d+)?)", re.IGNORECASE)

_VERDICTS = {"A": "correct", "B": "incorrect", "C": "not attempted"}
_GRADER = (
    "You grade one answer against a reference answer. Judge the meaning, not the wording.\n"
    "A: CORRECT. The answer gives everything that the reference gives and contradicts none of it. {tolerance}\n"
    "B: INCORRECT. Some statement of the answer contradicts the reference, even if it is hedged.\n"
    "C: NOT_ATTEMPTED. The reference is not given, and nothing contradicts it, as in a refusal.\n\n"
    "Question: {question}\n\nReference answer: {reference}\n\nAnswer to grade: {answer}\n\n"
    "Reply with the one letter A, B or C."
)
"""Our own wording of the three verdicts of SimpleQA's grader."""

TOLERANCES = {
    "qa": "Spelling, order of names and hedging do not matter; a number must be right to the reference's last digit.",
    "finance": "A number may differ by half a percent, and its unit and scale may be written in another way.",
}


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge model.

    Attributes:
        complete: asks it.
        model: its name, for the record.
        concurrency: questions to it at once.
    """

    complete: Complete
    model: str
    concurrency: int = 8


class ConversationJudge:
    """Grades each turn of a conversation from 1 to 10; the score's grade is the mean over the turns."""

    name = "judge"

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Grades all answers, several at once."""
        return _at_once(self._judge, self._grade, answers)

    def _grade(self, answer: Answer) -> Score:
        if answer.failed:
            return Score(None, None, "the request failed")
        turns = []
        for turn in range(len(answer.outputs)):
            messages = grading_messages(answer, turn)
            reply = self._judge.complete(messages)
            turns.append(
                {"turn": turn + 1, "grade": rating(reply), "prompt": [dict(m) for m in messages], "reply": reply}
            )
        details = {"judge": self._judge.model, "category": answer.category, "turns": turns}
        grades = [turn["grade"] for turn in turns if isinstance(turn["grade"], float)]
        if len(grades) < len(turns):
            return Score(None, None, "the judge's reply has no [[rating]] from 1 to 10", details=details)
        grade = sum(grades) / len(grades)
        return Score(None, None, f"graded {', '.join(f'{grade:g}' for grade in grades)} by turn", grade, details)


def grading_messages(answer: Answer, turn: int) -> tuple[Mapping[str, str], ...]:
    """What the judge is asked about one turn: the first by itself, a later one with the conversation before it."""
    references = tuple(answer.reference or ())
    reference = references if turn < len(references) and references[turn] else ()
    if not turn:
        parts = [f"[Instruction]\n{_FIRST_TURN_COMPARING if reference else _FIRST_TURN}"]
        parts.append(f"[Question]\n{answer.question[0]}")
        if reference:
            parts.append(f"[The Start of Reference Answer]\n{reference[0]}\n[The End of Reference Answer]")
        parts.append(
            f"[The Start of Assistant's Answer]\n{visible(answer.outputs[0])}\n[The End of Assistant's Answer]"
        )
        return _messages(_SYSTEM, "\n\n".join(parts))
    replies = tuple(map(visible, answer.outputs))
    shown = [_conversation("Reference Answer", answer.question, reference, turn)] if reference else []
    shown.append(_conversation("Assistant A's Conversation with User", answer.question, replies, turn))
    return _messages(_SECOND_TURN_COMPARING if reference else _SECOND_TURN, "\n\n\n".join(shown))


def _messages(system: str, user: str) -> tuple[Mapping[str, str], ...]:
    return ({"role": "system", "content": system}, {"role": "user", "content": user})


def _conversation(title: str, questions: Sequence[str], replies: Sequence[str], turn: int) -> str:
    speaker = "Reference answer" if title.startswith("Reference") else "Assistant A"
    turns = [
        f"### User:\n{question}\n\n### {speaker}:\n{reply}"
        for question, reply in list(zip(questions, replies, strict=False))[: turn + 1]
    ]
    return "\n\n".join((f"<|The Start of {title}|>", *turns, f"<|The End of {title}|>"))


def rating(reply: str) -> float | None:
    """The last rating of a judge's reply; None where there is none from 1 to 10."""
    found = [float(bracketed or bare) for bracketed, bare in _RATING.findall(visible(reply))]
    return found[-1] if found and 1 <= found[-1] <= 10 else None


class AnswerJudge:
    """Has short answers called correct, incorrect or not attempted."""

    name = "judge"

    def __init__(self, judge: Judge, tolerance: str) -> None:
        self._judge = judge
        self._tolerance = tolerance

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Judges all answers, several at once."""
        return _at_once(self._judge, self._score, answers)

    def _score(self, answer: Answer) -> Score:
        if answer.failed or answer.truncated:
            return Score(False, None, "the request failed" if answer.failed else "cut at the token limit")
        text = visible(answer.last)
        if not text:
            return Score(False, None, "empty output")
        question = answer.question[-1] if answer.question else ""
        prompt = _GRADER.format(tolerance=self._tolerance, question=question, reference=answer.reference, answer=text)
        reply = self._judge.complete(({"role": "user", "content": prompt},))
        details = {"judge": self._judge.model, "prompt": prompt, "reply": reply}
        letter = re.search(r"(?<![A-Za-z])([ABC])(?![A-Za-z])", visible(reply))
        if letter is None:
            return Score(None, text[:200], "the judge's reply is none of A, B and C", details=details)
        called = _VERDICTS[letter[1]]
        answered = None if called == "not attempted" else text[:200]
        return Score(called == "correct", answered, f"judged {called}", details=details)


def _at_once(judge: Judge, score: Callable[[Answer], Score], answers: Sequence[Answer]) -> list[Score]:
    def guarded(answer: Answer) -> Score:
        try:
            return score(answer)
        except SpecForgeError as error:
            return Score(None, None, f"the judge failed: {error}")

    with ThreadPoolExecutor(max(1, judge.concurrency), thread_name_prefix="judge") as threads:
        return list(threads.map(guarded, answers))

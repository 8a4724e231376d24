"""The judge, over a real endpoint on loopback that answers by script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from specforge.client.judge import JudgeClient
from specforge.datasets import ScoringOptions, make_scorer, unscored_reason
from specforge.errors import RequestError, UsageError
from specforge.scoring.judge import TOLERANCES, AnswerJudge, ConversationJudge, Judge, rating
from specforge.scoring.score import Answer

Reply = Callable[[dict[str, Any]], tuple[int, Any]]


class ScriptedJudge:
    """An OpenAI-compatible endpoint; ``reply`` gives status and body by the request's body."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.paths: list[str] = []


def says(text: str) -> Reply:
    return lambda _body: (200, {"choices": [{"message": {"role": "assistant", "content": text}}]})


@contextmanager
def scripted_judge(reply: Reply) -> Iterator[ScriptedJudge]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    judge = ScriptedJudge(f"http://127.0.0.1:{server.server_address[1]}")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            del format, args

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            judge.bodies.append(body)
            judge.authorizations.append(self.headers.get("Authorization"))
            judge.paths.append(self.path)
            status, answer = reply(body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server.RequestHandlerClass = Handler
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield judge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def conversation(**changes: Any) -> Answer:
    fields: dict[str, Any] = {
        "row_id": "81",
        "reference": None,
        "outputs": ("First reply.", "Second reply."),
        "question": ("First question?", "Second question?"),
        "category": "writing",
    }
    return Answer(**(fields | changes))


def options(url: str | None, **changes: Any) -> ScoringOptions:
    return ScoringOptions(judge_base_url=url, judge_model="grader", **changes)


def test_each_turn_of_a_conversation_is_graded() -> None:
    def reply(body: dict[str, Any]) -> tuple[int, Any]:
        return says("Fine. Rating: [[4]]" if "Second reply." in str(body["messages"]) else "Good. Rating: [[9]]")(body)

    with scripted_judge(reply) as judge:
        scorer = make_scorer("mtbench", options(judge.url))
        assert scorer is not None
        (score,) = scorer.score_all([conversation()])
    assert (score.correct, score.grade) == (None, 6.5)
    assert score.details is not None
    assert [(turn["turn"], turn["grade"]) for turn in score.details["turns"]] == [(1, 9.0), (2, 4.0)]
    assert score.details["category"] == "writing"
    assert "First question?" in str(score.details["turns"][0]["prompt"])
    assert score.details["turns"][0]["reply"] == "Good. Rating: [[9]]"


def test_a_reference_is_shown_to_the_judge_where_the_row_has_one() -> None:
    with scripted_judge(says("[[5]]")) as judge:
        scorer = ConversationJudge(Judge(JudgeClient(judge.url, "grader").complete, "grader", concurrency=1))
        scorer.score_all([conversation(reference=("It is 7.", "It is 8."))])
    first, second = (str(body["messages"]) for body in judge.bodies)
    assert "It is 7." in first
    assert "It is 8." not in first
    assert "It is 8." in second


def test_thinking_is_not_shown_to_the_judge() -> None:
    with scripted_judge(says("[[5]]")) as judge:
        scorer = ConversationJudge(Judge(JudgeClient(judge.url, "grader").complete, "grader"))
        scorer.score_all([conversation(outputs=("<think>secret</think>shown",))])
    assert "secret" not in str(judge.bodies)
    assert "shown" in str(judge.bodies)


@pytest.mark.parametrize(
    "reply,grade",
    [
        ("Rating: [[7]]", 7.0),
        ("Rating: [[7.5]]", 7.5),
        ("First [[3]], but in the end [[8]]", 8.0),
        ("<think>[[1]]</think>[[6]]", 6.0),
        ("Rating: 6", 6.0),
        ("Rating: [[11]]", None),
        ("Rating: [[0]]", None),
        ("It is good.", None),
        ("", None),
    ],
)
def test_the_last_rating_from_1_to_10_counts(reply: str, grade: float | None) -> None:
    assert rating(reply) == grade


def test_a_reply_without_a_rating_gives_no_grade_and_keeps_the_reply() -> None:
    with scripted_judge(says("It is good.")) as judge:
        scorer = ConversationJudge(Judge(JudgeClient(judge.url, "grader").complete, "grader"))
        (score,) = scorer.score_all([conversation()])
    assert (score.correct, score.grade) == (None, None)
    assert "no [[rating]]" in score.reason
    assert score.details is not None
    assert score.details["turns"][0]["reply"] == "It is good."


@pytest.mark.parametrize(
    "reply,correct,answered",
    [("A", True, True), ("B", False, True), ("C", False, False), ("Verdict: **A**", True, True), ("maybe", None, True)],
)
def test_a_short_answer_is_correct_incorrect_or_not_attempted(reply: str, correct: bool | None, answered: bool) -> None:
    with scripted_judge(says(reply)) as judge:
        scorer = make_scorer("simpleqa", options(judge.url))
        assert scorer is not None
        (score,) = scorer.score_all([Answer("row", "Vienna", ("It is Wien.",), question=("Which city?",))])
    assert score.correct is correct
    assert (score.answer is not None) is answered
    assert "Vienna" in str(judge.bodies)
    assert "Which city?" in str(judge.bodies)


@pytest.mark.parametrize("changes", [{"failed": True}, {"truncated": True}, {"outputs": ("<think>",)}])
def test_an_answer_that_never_came_is_wrong_without_asking(changes: dict[str, Any]) -> None:
    with scripted_judge(says("A")) as judge:
        scorer = AnswerJudge(Judge(JudgeClient(judge.url, "grader").complete, "grader"), TOLERANCES["qa"])
        (score,) = scorer.score_all([Answer(**{"row_id": "row", "reference": "x", "outputs": ("x",), **changes})])
    assert score.correct is False
    assert judge.bodies == []


def test_the_key_and_the_model_are_sent_and_a_v1_path_is_not_doubled() -> None:
    with scripted_judge(says("[[5]]")) as judge:
        JudgeClient(f"{judge.url}/v1/", "grader", "key").complete([{"role": "user", "content": "?"}])
    assert judge.paths == ["/v1/chat/completions"]
    assert judge.authorizations == ["Bearer key"]
    assert judge.bodies[0]["model"] == "grader"
    assert judge.bodies[0]["temperature"] == 0


def test_a_busy_judge_is_asked_again() -> None:
    statuses = iter((503, 429))

    def reply(body: dict[str, Any]) -> tuple[int, Any]:
        status = next(statuses, 200)
        return says("[[5]]")(body) if status == 200 else (status, {"error": "busy"})

    with scripted_judge(reply) as judge:
        assert JudgeClient(judge.url, "grader", pauses_s=(0, 0)).complete([]) == "[[5]]"
    assert len(judge.bodies) == 3


def test_a_model_that_takes_no_temperature_is_asked_without() -> None:
    def reply(body: dict[str, Any]) -> tuple[int, Any]:
        return (400, {"error": "temperature is not supported"}) if "temperature" in body else says("[[5]]")(body)

    with scripted_judge(reply) as judge:
        assert JudgeClient(judge.url, "grader").complete([]) == "[[5]]"


@pytest.mark.parametrize("answer", [(401, {"error": "bad key"}), (200, {"nothing": "here"})])
def test_a_judge_that_refuses_gives_no_verdict_never_a_wrong_one(answer: tuple[int, Any]) -> None:
    with scripted_judge(lambda _body: answer) as judge:
        client = JudgeClient(judge.url, "grader", "key", pauses_s=())
        (score,) = ConversationJudge(Judge(client.complete, "grader")).score_all([conversation()])
        with pytest.raises(RequestError, match="--judge-base-url") as raised:
            client.complete([])
    assert (score.correct, score.grade) == (None, None)
    assert "the judge failed" in score.reason
    assert "Bearer" not in str(raised.value)


def test_a_judge_that_is_not_there_is_told_under_its_flag() -> None:
    with scripted_judge(says("")) as judge:
        url = judge.url
    with pytest.raises(RequestError, match=r"--judge-base-url.*answered nothing"):
        JudgeClient(url, "grader", pauses_s=()).complete([])


def test_half_a_judge_is_refused() -> None:
    with pytest.raises(UsageError, match="a judge needs both"):
        make_scorer("simpleqa", ScoringOptions(judge_model="grader"))


def test_an_address_that_is_none_is_refused_under_its_flag() -> None:
    with pytest.raises(UsageError, match="--judge-base-url: 'ftp://x'"):
        make_scorer("simpleqa", options("ftp://x"))


def test_a_conversation_without_a_judge_says_why_it_is_not_scored() -> None:
    assert make_scorer("mtbench", ScoringOptions()) is None
    assert "--judge-base-url" in (unscored_reason("mtbench", ScoringOptions()) or "")


def test_code_that_may_not_run_says_why_it_is_not_scored() -> None:
    assert make_scorer("humaneval", ScoringOptions()) is None
    assert "--allow-code-execution" in (unscored_reason("humaneval", ScoringOptions()) or "")


def test_deterministic_scorers_of_short_answers_are_named_as_matches() -> None:
    names = {name: getattr(make_scorer(name, ScoringOptions()), "name", None) for name in ("simpleqa", "financeqa")}
    assert names == {"simpleqa": "short-answer match", "financeqa": "finance-number match"}

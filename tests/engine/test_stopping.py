"""Where answers end."""

from collections.abc import Sequence

import pytest

from specforge.engine.stopping import Stop, StopCheck


class Letters:
    """Token i is the i-th letter."""

    def __init__(self) -> None:
        self.text = ""

    def feed(self, tokens: Sequence[int]) -> str:
        added = "".join(chr(ord("a") + token) for token in tokens)
        self.text += added
        return added


def check(strings: tuple[str, ...] = (), tokens: frozenset[int] = frozenset()) -> StopCheck:
    return StopCheck(strings, tokens, Letters)


def test_an_answer_goes_on_below_its_limit() -> None:
    assert check().check([1, 2], room=3) is None


def test_the_limit_cuts_what_was_accepted_beyond_it() -> None:
    assert check().check([1, 2, 3], room=2) == Stop(2, "length", {})


def test_a_limit_of_zero_keeps_nothing() -> None:
    assert check().check([1], room=0) == Stop(0, "length", {})


def test_a_stop_token_is_kept_and_named() -> None:
    assert check(tokens=frozenset({5})).check([4, 5, 6], room=9) == Stop(2, "stop", {"matched": 5})


def test_a_stop_string_may_span_steps() -> None:
    stops = check(("bcd",))
    assert stops.check([0, 1, 2], room=9) is None
    assert stops.check([3, 4], room=6) == Stop(1, "stop", {"matched": "bcd"})


def test_a_stop_string_goes_before_a_stop_token_of_the_same_step() -> None:
    assert check(("cd",), frozenset({1})).check([1, 2, 3], room=9) == Stop(3, "stop", {"matched": "cd"})


@pytest.mark.parametrize("stops", [check(("c",)), check(tokens=frozenset({2}))], ids=["string", "token"])
def test_a_stop_beyond_the_limit_is_the_limit(stops: StopCheck) -> None:
    assert stops.check([0, 1, 2], room=2) == Stop(2, "length", {})


def test_a_stop_on_the_last_token_is_a_stop() -> None:
    assert check(tokens=frozenset({2})).check([0, 2], room=2) == Stop(2, "stop", {"matched": 2})

"""LiveCodeBench's tests are read without running what is in them."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from pathlib import Path

import pytest

from specforge.errors import DatasetError
from specforge.scoring.code import livecode_task
from specforge.scoring.code.tasks import IoTest

PUBLIC = json.dumps([{"input": "1\n", "output": "2\n", "testtype": "stdin"}])
PRIVATE = json.dumps([{"input": "3\n", "output": "4\n", "testtype": "stdin"}])


def packed(value: object, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol=protocol))).decode()


@pytest.mark.parametrize("private", [PRIVATE, packed(PRIVATE), packed(PRIVATE, 2), packed(PRIVATE, 5)])
def test_private_tests_follow_the_public_ones(private: str) -> None:
    task = livecode_task(PUBLIC, private, "{}", "row")

    assert task.tests == (IoTest("1\n", "2\n"), IoTest("3\n", "4\n"))
    assert task.func_name is None


def test_a_functional_row_has_its_function() -> None:
    tests = json.dumps([{"input": "[1]", "output": "1", "testtype": "functional"}])

    assert livecode_task(tests, "[]", '{"func_name": "first"}', "row").func_name == "first"


def test_a_row_without_private_tests_is_fine() -> None:
    assert len(livecode_task(PUBLIC, "", "", "row").tests) == 1


class Runs:
    """A value whose unpickling runs something."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_runs_something_is_refused_and_does_not_run(tmp_path: Path) -> None:
    target = tmp_path / "made"

    with pytest.raises(DatasetError, match="private_test_cases can't be read"):
        livecode_task(PUBLIC, packed(Runs(target)), "{}", "row")

    assert not target.exists()


@pytest.mark.parametrize("value", [["a", "list"], b"bytes", 7, None, {"a": 1}])
def test_a_pickle_of_anything_but_a_text_is_refused(value: object) -> None:
    with pytest.raises(DatasetError, match="not a text"):
        livecode_task(PUBLIC, packed(value), "{}", "row")


@pytest.mark.parametrize(
    "public, private, metadata, column",
    [
        ("{", "[]", "{}", "public_test_cases"),
        ('[{"input": "1"}]', "[]", "{}", "public_test_cases"),
        (PUBLIC, "not base64!", "{}", "private_test_cases"),
        (PUBLIC, base64.b64encode(b"not zlib").decode(), "{}", "private_test_cases"),
        (PUBLIC, base64.b64encode(zlib.compress(b"not a pickle")).decode(), "{}", "private_test_cases"),
        (PUBLIC, packed('{"an": "object"}'), "{}", "private_test_cases"),
        (PUBLIC, "[]", "{", "metadata"),
    ],
)
def test_a_column_that_is_not_what_it_should_be_is_named(public: str, private: str, metadata: str, column: str) -> None:
    with pytest.raises(DatasetError, match=f"row 17: {column}"):
        livecode_task(public, private, metadata, "17")


def test_a_functional_row_without_a_function_name_is_refused() -> None:
    tests = json.dumps([{"input": "[1]", "output": "1", "testtype": "functional"}])

    with pytest.raises(DatasetError, match="func_name"):
        livecode_task(tests, "[]", "{}", "row")

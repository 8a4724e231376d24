"""Reading LiveCodeBench's tests, whose private ones come pickled."""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import zlib
from typing import Any

from specforge.errors import DatasetError
from specforge.scoring.code.tasks import IoTest, LiveCodeTask


class _TextOnly(pickle.Unpickler):
    """An unpickler that can build plain data but look up no class or function, so that nothing of the file runs."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module_name}.{global_name}, where only a text may stand")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"it names the external object {pid!r}, where only a text may stand")


def _unpacked(text: str) -> str:
    """The JSON text in base64(zlib(pickle(text))), decompressed and unpickled without running anything.

    Raises:
        ValueError: it is not that, or the pickle holds anything but a text.
    """
    try:
        value = _TextOnly(io.BytesIO(zlib.decompress(base64.b64decode(text, validate=True)))).load()
    except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # a malformed pickle raises whatever its opcodes run into
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not isinstance(value, str):
        raise ValueError(f"the pickle holds a {type(value).__name__}, not a text")
    return value


def _tests(text: str) -> list[dict[str, str]]:
    tests = json.loads(text)
    if not isinstance(tests, list):
        raise ValueError(f"a list of tests was expected, not a {type(tests).__name__}")
    for test in tests:
        if not (isinstance(test, dict) and all(isinstance(test.get(key), str) for key in ("input", "output"))):
            raise ValueError("each test needs an input and an output, both texts")
    return tests


def livecode_task(public: str, private: str, metadata: str, row: str) -> LiveCodeTask:
    """The task of one row of ``livecodebench/code_generation_lite``.

    Args:
        public: the column ``public_test_cases``, a JSON list.
        private: the column ``private_test_cases``: a JSON list, or base64(zlib(pickle(a JSON list's text))).
        metadata: the column ``metadata``, a JSON object, with ``func_name`` where a function is asked for.
        row: the row's name, for messages.

    Raises:
        DatasetError: one of the columns is not what it should be.
    """
    column = "public_test_cases"
    try:
        tests = _tests(public)
        column = "private_test_cases"
        private = private.strip()
        if private:
            tests = tests + _tests(private if private.startswith("[") else _unpacked(private))
        column = "metadata"
        about = json.loads(metadata) if metadata.strip() else {}
        func_name = about.get("func_name") if isinstance(about, dict) else None
    except ValueError as error:
        raise DatasetError(f"livecodebench row {row}: {column} can't be read: {error}") from error
    kinds = {str(test.get("testtype", "stdin")) for test in tests}
    if "functional" in kinds and not func_name:
        raise DatasetError(f"livecodebench row {row}: functional tests need a func_name in metadata")
    return LiveCodeTask(
        tests=tuple(IoTest(input=test["input"], output=test["output"]) for test in tests),
        func_name=str(func_name) if func_name and kinds != {"stdin"} else None,
    )

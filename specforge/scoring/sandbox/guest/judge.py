"""The trusted side of a conversation with a program: holds the tests, calls the program, decides."""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .wire import Channel, Decoder, Encoder, WireError

_REASON = 300
"""Characters of the longest reason."""


class ProgramEnded(BaseException):
    """The conversation is over. Not an Exception, so that a test's own ``except`` does not take it for an answer."""


class Remote:
    """An object of the program's that can't be written down: a function, a generator, an instance.

    It can be called, iterated, indexed, and asked for attributes and its text; what comes back is a plain value or
    another of these. It does not compare with plain values or compute: the program must not be the one to say
    whether its own answer is right.
    """

    __slots__ = ("_number", "_peer")

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        named = [part for pair in keywords.items() for part in pair]
        return self._peer.ask("call", self, *arguments, *named, keywords=len(keywords))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__doc__"):
            raise AttributeError(name)
        return self._peer.ask("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("setattr", self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._peer.ask("getitem", self, key)

    def __len__(self) -> int:
        return int(self._peer.ask("len", self))

    def __bool__(self) -> bool:
        return self._peer.ask("bool", self) is True

    def __str__(self) -> str:
        text = self._peer.ask("str", self)
        return text if type(text) is str else "?"

    def __repr__(self) -> str:
        return f"<object {self._number} of the program>"

    def __iter__(self) -> Iterator[Any]:
        iterator = self._peer.ask("iter", self)
        if not isinstance(iterator, Remote):
            return iter(iterator)
        return _RemoteIterator(iterator)

    def __next__(self) -> Any:
        return self._peer.ask("next", self)

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if isinstance(other, Remote):
            return self._peer.ask("equal", self, other) is True
        return NotImplemented

    def __hash__(self) -> int:
        return hash(("remote", self._number))


class _RemoteIterator:
    """Steps through an iterator of the program's."""

    def __init__(self, iterator: Remote) -> None:
        self._iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)


class Peer:
    """The program as the judge sees it.

    Attributes:
        broken: why the conversation ended early; None while it goes on. Nothing passes once it is set.
        calls: calls of the program's functions that returned or raised.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._remotes: dict[int, Remote] = {}
        self._callbacks: list[Callable[..., Any]] = []
        self.broken: str | None = None
        self.calls = 0

    def load(self, source: str, prelude: str = "") -> None:
        """Has the program loaded.

        Raises:
            ProgramEnded: it raised or ended while it was loaded.
        """
        try:
            self._channel.send({"source": source, "prelude": prelude})
            answer = self._channel.receive()
        except WireError as error:
            raise self._end(f"the program ended while it was loaded: {error}") from None
        if not (isinstance(answer, dict) and answer.get("loaded") is True):
            names, text = _error_of(answer)
            raise self._end(f"the program can't be loaded: {names[0]}: {text}")

    def named(self, name: str) -> Any:
        """What the program calls ``name``.

        Raises:
            KeyError: it has nothing of that name.
        """
        return self.ask("name", name)

    def ask(self, what: str, *arguments: Any, keywords: int = 0) -> Any:
        """Has the program do something and returns its answer.

        Raises:
            Exception: what the program raised, as the nearest built-in exception.
            ProgramEnded: it ended, or does not keep to the protocol.
        """
        if self.broken is not None:
            raise ProgramEnded(self.broken)
        encoder = Encoder(self._outgoing)
        try:
            documents = [encoder.encode(argument) for argument in arguments]
            self._channel.send({"ask": what, "arguments": documents, "keywords": keywords})
            answer = self._answer()
            self.calls += what == "call"
            if "error" in answer:
                raised = self._raised(answer)
            else:
                return self._take(answer, encoder)
        except (WireError, KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise self._end(f"{type(error).__name__}: {error}") from None
        raise raised

    def _answer(self) -> dict[str, Any]:
        while True:
            answer = self._channel.receive()
            if not isinstance(answer, dict):
                raise WireError("an answer must be an object")
            if "callback" not in answer:
                return answer
            decoder = Decoder(self._incoming)
            try:
                function = self._callbacks[answer["callback"]]
                returned = function(*[decoder.decode(document) for document in answer["arguments"]])
            except Exception as error:
                self._channel.send({"raised": f"{type(error).__name__}: {error}"})
            else:
                self._channel.send({"returned": Encoder(self._outgoing).encode(returned)})

    def _take(self, answer: dict[str, Any], encoder: Encoder) -> Any:
        decoder = Decoder(self._incoming, encoder.containers)
        result = decoder.decode(answer["result"])
        for number, contents in answer["changed"]:
            if not 0 <= number < len(encoder.containers):
                raise WireError("no such argument")
            decoder.refill(encoder.containers[number], contents)
        return result

    def _raised(self, answer: dict[str, Any]) -> BaseException:
        names, text = _error_of(answer)
        for name in names:
            kind = getattr(builtins, name, None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                error = kind.__new__(kind)
                error.args = (text,)
                return error
        return self._end(f"the program raised {names[0]}")

    def _end(self, reason: str) -> ProgramEnded:
        self.broken = self.broken or reason
        return ProgramEnded(reason)

    def _outgoing(self, value: Any) -> list[Any]:
        if isinstance(value, Remote):
            return ["handle", value._number]
        if callable(value):
            self._callbacks.append(value)
            return ["handle", len(self._callbacks) - 1, "judge"]
        raise TypeError(f"a {type(value).__name__} can't be passed to the program")

    def _incoming(self, document: list[Any]) -> Any:
        _, number = document
        if type(number) is not int:
            raise WireError("not a handle")
        return self._remotes.setdefault(number, Remote(self, number))


def _error_of(answer: Any) -> tuple[list[str], str]:
    if isinstance(answer, dict):
        names, text = answer.get("error"), answer.get("text")
        if isinstance(names, list) and names and all(isinstance(name, str) for name in names) and isinstance(text, str):
            return names, text
    raise WireError("not an error")


class _CountAsserts(ast.NodeTransformer):
    """Counts each assert that held, by a call of ``counter`` after it."""

    def __init__(self, counter: str) -> None:
        self._counter = counter

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        count = ast.Expr(ast.Call(ast.Name(self._counter, ast.Load()), [], []))
        return [node, ast.fix_missing_locations(ast.copy_location(count, node))]


class Checks:
    """Runs tests and counts the asserts that held."""

    _COUNTER = "__specforge_held__"

    def __init__(self) -> None:
        self.held = 0
        self.namespace: dict[str, Any] = {"__name__": "tests", self._COUNTER: self._count}

    def _count(self) -> None:
        self.held += 1

    def run(self, source: str) -> None:
        """Runs a piece of test source in the tests' namespace."""
        tree = _CountAsserts(self._COUNTER).visit(ast.parse(source))
        exec(compile(tree, "<tests>", "exec", dont_inherit=True), self.namespace)


def _definitions_only(source: str, keep: tuple[type[ast.stmt], ...]) -> str:
    tree = ast.parse(source)
    return ast.unparse(ast.Module([node for node in tree.body if isinstance(node, keep)], []))


_IMPORTS = (ast.Import, ast.ImportFrom)


def run_function_check(peer: Peer, job: dict[str, Any], checks: Checks) -> None:
    """HumanEval: ``check`` is called with the program's function; the prompt's own helpers are the judge's."""
    peer.load(job["source"], job["prelude"])
    checks.run(job["prelude"])
    candidate = peer.named(job["entry_point"])
    checks.namespace[job["entry_point"]] = candidate
    checks.run(job["test"])
    checks.namespace["check"](candidate)


def run_asserts(peer: Peer, job: dict[str, Any], checks: Checks) -> None:
    """MBPP: each assert by itself. Functions under test, and classes, are the program's; all else is the judge's."""
    setup = job["setup"]
    known = _definitions_only(setup, (*_IMPORTS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    peer.load(job["source"], known)
    for name in job["modules"]:
        checks.namespace[name] = __import__(name)
    for name in job["names"]:
        with contextlib.suppress(KeyError):  # a test that needs it says so, with a NameError
            checks.namespace[name] = peer.named(name)
    tree = ast.parse(setup)
    own = [node for node in tree.body if not isinstance(node, ast.ClassDef)]
    checks.run(ast.unparse(ast.Module(own, [])))
    for test in job["tests"]:
        checks.run(test)


def run_calls(peer: Peer, job: dict[str, Any], checks: Checks) -> None:
    """LiveCodeBench's functions: arguments and results are JSON; a tuple counts as a list."""
    peer.load(job["source"], job["prelude"])
    try:
        owner = peer.named("Solution")()
        function = getattr(owner, job["func_name"])
    except (KeyError, AttributeError):
        function = peer.named(job["func_name"])
    for number, test in enumerate(job["tests"]):
        arguments = [json.loads(line) for line in test["input"].split("\n") if line.strip()]
        expected = json.loads(test["output"])
        result = function(*arguments)
        result = list(result) if isinstance(result, tuple) else result
        if not same_plain(result, expected):
            raise AssertionError(f"test {number + 1}: {_short(result)} is not {_short(expected)}")
        checks.held += 1


def same_plain(left: Any, right: Any) -> bool:
    """Equality of plain values; an object of the program's equals none."""
    return not isinstance(left, Remote) and bool(left == right)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_WAYS = {"function": run_function_check, "asserts": run_asserts, "calls": run_calls}


def judge(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job's tests against the program behind ``channel``.

    Returns:
        ``passed``; ``checks``, the asserts that held; ``reason``, empty where it passed.
    """
    sys.setrecursionlimit(10_000)
    peer, checks = Peer(channel), Checks()
    reason = ""
    try:
        _WAYS[job["way"]](peer, job, checks)
    except ProgramEnded as ended:
        reason = str(ended)
    except AssertionError as error:
        reason = f"assert {checks.held + 1} failed" + (f": {error}" if str(error) else "")
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
    if peer.broken is not None:
        reason = peer.broken
    elif not reason and checks.held == 0:
        reason = "the test checks nothing"
    elif not reason and peer.calls == 0:
        reason = "the test does not call the program"
    return {"passed": not reason, "checks": checks.held, "reason": reason[:_REASON]}

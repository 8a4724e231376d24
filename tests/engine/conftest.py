"""Tiny models, and engines that serve them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.engine import tiny
from tests.support.processes import ROOT, Running, free_port, running, wait_until

_START_SECONDS = 60.0


@dataclass(frozen=True)
class Models:
    """Folders of a target and its drafts."""

    shape: tiny.Shape
    target: Path
    eagle3: Path
    standalone: Path

    def draft_flags(self, algorithm: str, shape: str) -> list[str]:
        """Flags of an algorithm; `shape` is steps,topk,nodes."""
        flags = ["--speculative-algorithm", algorithm]
        if algorithm == "NGRAM":
            return [*flags, "--speculative-num-draft-tokens", shape.split(",")[2]]
        steps, topk, nodes = shape.split(",")
        draft = self.eagle3 if algorithm == "EAGLE3" else self.standalone
        return [
            *flags,
            "--speculative-draft-model-path",
            str(draft),
            "--speculative-num-steps",
            steps,
            "--speculative-eagle-topk",
            topk,
            "--speculative-num-draft-tokens",
            nodes,
        ]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """A target of eight layers, an EAGLE-3 head and a standalone draft that agree with it now and then."""
    root = tmp_path_factory.mktemp("models")
    shape = tiny.Shape(layers=8, context=2048)
    weights = tiny.make_target(root / "target", shape)
    tiny.make_eagle3(root / "eagle3", shape, weights)
    tiny.make_standalone(root / "standalone", shape, weights)
    return Models(shape, root / "target", root / "eagle3", root / "standalone")


@dataclass(frozen=True)
class Served:
    """A running engine."""

    url: str
    program: Running


EngineFactory = Callable[..., Served]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineFactory]:
    """Starts engines: ``engine(model, *flags)``; the same model and flags give the same engine within a module."""
    served: dict[tuple[str, ...], Served] = {}
    with ExitStack() as stack:

        def start(model: Path, *flags: str) -> Served:
            key = (str(model), *flags)
            if key not in served:
                served[key] = stack.enter_context(_serving(tmp_path_factory.mktemp("engine"), key))
            return served[key]

        yield start


@contextmanager
def _serving(folder: Path, arguments: tuple[str, ...]) -> Iterator[Served]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "specforge.engine", "--model-path", *arguments, "--port", str(port)]
    with running(command, cwd=folder, environment={"PYTHONPATH": str(ROOT)}) as program:

        def ready() -> bool:
            assert program.process.poll() is None, program.output
            try:
                return requests.get(f"{url}/ready", timeout=5).ok
            except requests.ConnectionError:
                return False

        wait_until(ready, within=_START_SECONDS, what="the engine to be ready")
        yield Served(url, program)

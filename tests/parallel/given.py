"""The harness's options as a command line that gives some of them would set them."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

from specforge.plugin.options import PREFIX, add_options


def options(**given: Any) -> dict[str, Any]:
    """Every option by its name with underscores: those given, the others at their defaults."""
    parser = argparse.ArgumentParser(add_help=False)
    pytest_parser: Any = SimpleNamespace(getgroup=lambda *_: SimpleNamespace(addoption=parser.add_argument))
    add_options(pytest_parser)
    defaults = {name.removeprefix(PREFIX): value for name, value in vars(parser.parse_args([])).items()}
    unknown = given.keys() - defaults.keys()
    assert not unknown, f"no such options: {unknown}"
    return {**defaults, **given}

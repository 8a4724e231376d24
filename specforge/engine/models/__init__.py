"""The models that the project ships: a small target, an EAGLE3 head and a standalone draft trained for it.

They are ordinary Hugging Face folders, which SGLang loads as well; tools/pair holds the recipe that made them.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def target_path() -> Path:
    """The folder of the target, a Llama of ten layers."""
    return _folder("target")


def eagle3_path() -> Path:
    """The folder of the EAGLE3 draft head, in SGLang's checkpoint format."""
    return _folder("eagle3")


def standalone_path() -> Path:
    """The folder of the standalone draft model, a Llama of two thin layers with the target's vocabulary."""
    return _folder("standalone")


def _folder(name: str) -> Path:
    return Path(str(files(__name__).joinpath(name)))

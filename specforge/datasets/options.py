"""What the user can say about datasets, as values: where they are, which revision, which seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specforge.datasets.registry import find
from specforge.errors import UsageError

FEW_SHOT_SUFFIX = ".train"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How datasets are loaded.

    Attributes:
        seed: orders the rows of a draw; the same seed draws the same rows everywhere.
        dataset_paths: local files or folders, by dataset name, or by ``NAME.train`` for the few-shot examples;
            :func:`parse_dataset_paths` makes it.
        revision: a Hub revision for every dataset, or ``NAME=REVISION`` pairs joined by commas; None for the newest.
        samples: use the rows that the project ships for datasets without a local path, instead of the Hub's.
        few_shot: worked examples in a prompt; None for the dataset's own number.
        warmup: how many prompts outside the measured ones to keep, at most.
    """

    seed: int = 0
    dataset_paths: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    samples: bool = False
    few_shot: int | None = None
    warmup: int = 256

    def revision_of(self, name: str) -> str | None:
        """The revision that was pinned for this dataset."""
        if self.revision is None or "=" not in self.revision:
            return self.revision
        pairs = (pair.partition("=") for pair in self.revision.split(","))
        return next((pinned.strip() for dataset, _, pinned in pairs if find(dataset.strip()).name == name), None)


def parse_dataset_paths(texts: Iterable[str]) -> dict[str, str]:
    """Reads ``--dataset-path`` arguments, ``NAME=FILE`` or ``NAME.train=FILE``; a folder is as good as a file.

    Raises:
        UsageError: another shape, an unknown dataset, a dataset named twice, or a path that does not exist.
    """
    paths: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            raise UsageError(
                f"--dataset-path: {text!r} is not NAME=FILE; expected for example gsm8k=test.jsonl "
                "or gsm8k.train=train.jsonl"
            )
        name = name.strip().lower()
        base = name.removesuffix(FEW_SHOT_SUFFIX)
        definition = find(base, flag="--dataset-path")
        key = definition.name + name[len(base) :]
        if key != definition.name and definition.few_shot is None:
            raise UsageError(f"--dataset-path: {text!r}: {definition.name} takes no few-shot examples")
        if key in paths:
            raise UsageError(f"--dataset-path: {key} is named twice, as {paths[key]!r} and {path.strip()!r}")
        expanded = Path(path.strip()).expanduser()
        if not expanded.exists():
            raise UsageError(f"--dataset-path: {text!r}: there is no file or folder {str(expanded)!r}")
        paths[key] = str(expanded)
    return paths

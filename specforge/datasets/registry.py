"""The one registry: every module of :mod:`specforge.datasets.catalog` defines one dataset as ``DATASET``."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil

from specforge.datasets import catalog
from specforge.datasets.definition import DatasetDefinition, subset_key
from specforge.errors import UsageError
from specforge.matrix import BenchmarkSpec


@functools.cache
def definitions() -> dict[str, DatasetDefinition]:
    """All datasets by name, in alphabetical order."""
    found = {}
    for module in sorted(pkgutil.iter_modules(catalog.__path__), key=lambda module: module.name):
        definition: DatasetDefinition = importlib.import_module(f"{catalog.__name__}.{module.name}").DATASET
        found[definition.name] = definition
    return found


def known_names() -> list[str]:
    """The datasets' names as they stand on the command line."""
    return list(definitions())


def find(name: str, flag: str = "--benchmark-list") -> DatasetDefinition:
    """The dataset of this name or alias; case, ``-`` and ``_`` do not matter.

    Raises:
        UsageError: there is none; the message names the flag and the nearest name.
    """
    key = _plain(name)
    for definition in definitions().values():
        if key in map(_plain, (definition.name, *definition.aliases)):
            return definition
    near = difflib.get_close_matches(key, known_names(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"{flag}: unknown dataset {name!r}; {hint}known: {', '.join(known_names())}")


def resolve(spec: BenchmarkSpec, flag: str = "--benchmark-list") -> DatasetDefinition:
    """The dataset of a benchmark spec, its subsets checked as far as they are known without reading it.

    Args:
        flag: where the spec was given, for messages.

    Raises:
        UsageError: an unknown dataset, or a subset that the dataset can't have.
    """
    definition = find(spec.name, flag)
    for subset in spec.subsets:
        if all(axis.expand(subset) is None for axis in definition.axes):
            raise unknown_subset(definition, subset, definition.subset_names, flag)
    return definition


def unknown_subset(
    definition: DatasetDefinition, subset: str, known: tuple[str, ...], flag: str = "--benchmark-list"
) -> UsageError:
    """The error for a subset that is not there, with the nearest name first and then all of them."""
    if not known:
        return UsageError(f"{flag}: {definition.name} has no subsets; found {subset!r}")
    by_key = {subset_key(name): name for name in known}
    near = difflib.get_close_matches(subset_key(subset), by_key, n=1, cutoff=0.6)
    hint = f"did you mean {by_key[near[0]]!r}? " if near else ""
    axes = " or ".join(axis.name for axis in definition.axes)
    return UsageError(f"{flag}: {definition.name} has no {axes} {subset!r}; {hint}known: {', '.join(known)}")


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "").replace("_", "")

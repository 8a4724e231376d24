"""``--matrix FILE``: the command line's options from a file, or from the record of a run that is to be repeated.

A file says nothing that the command line can't: it ends as the same options. Paths in it are those of the command line
too, seen from where pytest runs.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import reprlib
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from specforge.client.endpoint import without_user
from specforge.datasets import find
from specforge.errors import UsageError
from specforge.matrix import BenchmarkSpec
from specforge.measurement.environment import without_secrets
from specforge.plugin.options import PREFIX, argument_parser, option
from specforge.plugin.settings import Settings
from specforge.plugin.token_limits import TokenLimits
from specforge.results.load import load_run

_LIMITS = ("num-prompts", "subset", "max-new-tokens")
_SECRET = ("api_key", "judge_api_key", "header")
_OF_ONE_RUN = ("matrix", "dry_run", "resume")


def apply_matrix(config: pytest.Config) -> None:
    """Sets the options that the file of ``--matrix`` names and the command line does not; workers are handed them.

    Raises:
        UsageError: the file can't be read, or names what is no option, or gives it a value of another type.
        RecordError: it is a JSON file and not a run's.
    """
    given = _given(config)
    for name, value in read_matrix(Path(option(config, "matrix")).expanduser(), given).items():
        setattr(config.option, PREFIX + name, value)


def read_matrix(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a file adds to those that are ``given``, both by their long names with underscores.

    Raises:
        UsageError, RecordError: as :func:`apply_matrix`.
    """
    table = dict(_read(path))
    limits = _benchmark_tables(table.pop("benchmark", {}), path)
    found: dict[str, Any] = {}
    options = _options_by_name()
    for key, value in table.items():
        action = options.get(str(key).replace("_", "-"))
        if action is None:
            raise _unknown(path, key, options)
        name = action.dest.removeprefix(PREFIX)
        if name in found:
            raise UsageError(f"--matrix: {path}: {key!r} is there twice, under two of its names")
        found[name] = _value(action, value, f"{path}: {key!r}")
    added = {name: value for name, value in found.items() if name not in given}
    return {**added, **_with_limits(limits, given, found)}


def resolved_options(config: pytest.Config, settings: Settings) -> dict[str, Any]:
    """The options of a run, as ``--matrix`` reads them again: all that differ from their defaults, and the matrix.

    Keys, headers, and users in addresses are left out; a run is repeated with those of the new command line.
    """
    options: dict[str, Any] = {}
    for action in argument_parser()._actions:
        name, value = action.dest.removeprefix(PREFIX), config.getoption(action.dest)
        if value == action.default or name in (*_SECRET, *_OF_ONE_RUN):
            continue
        if isinstance(value, str):
            (value,) = without_secrets([value])
        elif isinstance(value, list):
            value = [without_user(item) if isinstance(item, str) else item for item in value]
        options[_long(action)] = value
    options["config-list"] = list(map(str, settings.configs))
    options["benchmark-list"] = list(map(str, settings.benchmarks))
    return options


def _given(config: pytest.Config) -> dict[str, Any]:
    """What stands on the command line, in ``addopts`` or in PYTEST_ADDOPTS, be it an option's default or not."""
    parser = argument_parser()
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    words = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    known, _ = parser.parse_known_args([*words, *map(str, config.invocation_params.args)])
    return {name.removeprefix(PREFIX): value for name, value in vars(known).items()}


def _options_by_name() -> dict[str, argparse.Action]:
    """Each option by each of its long names, without dashes in front; but for the file's own."""
    actions = (action for action in argument_parser()._actions if action.dest != PREFIX + "matrix")
    return {name.lstrip("-"): action for action in actions for name in action.option_strings}


def _long(action: argparse.Action) -> str:
    return action.option_strings[0].lstrip("-")


def _unknown(path: Path, key: object, known: Iterable[str], where: str = "") -> UsageError:
    names = [*known, *(() if where else ("benchmark",))]
    near = difflib.get_close_matches(str(key).replace("_", "-").lower(), names, n=1, cutoff=0.0)
    return UsageError(f"--matrix: {path}: {where}unknown key {key!r}; the nearest known one is {near[0]!r}")


def _read(path: Path) -> Mapping[str, Any]:
    readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml, ".json": _read_record}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"--matrix: {str(path)!r}: expected a name that ends in {', '.join(readers)}")
    try:
        table = reader(path)
    except OSError as error:
        raise UsageError(f"--matrix: {str(path)!r} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--matrix: {path}: not UTF-8 text") from None
    except RecursionError:
        raise UsageError(f"--matrix: {path}: nested too deeply") from None
    if not isinstance(table, dict):
        raise UsageError(f"--matrix: {path}: found {_kind(table)}, expected options by their names")
    return table


def _read_toml(path: Path) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"--matrix: {path}: not TOML: {error}") from None


def _read_yaml(path: Path) -> Any:
    import yaml

    try:
        return yaml.load(path.read_text(encoding="utf-8-sig"), _yaml_loader())  # a safe one
    except yaml.YAMLError as error:
        raise UsageError(f"--matrix: {path}: not YAML: {' '.join(str(error).split())}") from None


def _yaml_loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Refuses what YAML leaves open: a key that is there twice, and a value that holds itself."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            written = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
            for key in written:
                if written.count(key) > 1:
                    raise yaml.constructor.ConstructorError(None, None, f"{key!r} is there twice", node.start_mark)
            return super().construct_mapping(node, deep)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: ARG002
            return super().construct_object(node, deep=True)  # so that it meets a node within itself, and says so

    return Loader


def _read_record(path: Path) -> dict[str, Any]:
    """What a run was asked, with the revisions that the Hub gave it then."""
    path.stat()
    cells = load_run(str(path)).cells
    options = cells[0]["environment"].get("options")
    if not isinstance(options, dict):
        raise UsageError(
            f"--matrix: {path}: the run does not say its options; it is not of pytest, or an older version"
        )
    sources = {cell["benchmark"]["name"]: cell["benchmark"]["source"] for cell in cells}
    pinned = {
        name: source["revision"]
        for name, source in sources.items()
        if source["kind"] == "hub" and source["revision"] and "@" not in source["revision"]
    }
    revisions = ",".join(f"{name}={revision}" for name, revision in pinned.items())
    return {**options, "dataset-revision": revisions} if revisions else options


def _benchmark_tables(tables: Any, path: Path) -> dict[str, BenchmarkLimits]:
    where = f"{path}: [benchmark]"
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise UsageError(f"--matrix: {where}: expected a table for each benchmark, such as [benchmark.gsm8k]")
    limits: dict[str, BenchmarkLimits] = {}
    for name, table in tables.items():
        dataset = find(str(name), f"--matrix: {where}").name
        if dataset in limits:
            raise UsageError(f"--matrix: {where}: {dataset} is there twice, under two of its names")
        limits[dataset] = BenchmarkLimits.read(table, path, f"[benchmark.{name}] ")
    return limits


@dataclass(frozen=True, slots=True)
class BenchmarkLimits:
    """A table ``[benchmark.NAME]``.

    Attributes:
        num_prompts, max_new_tokens: at least 1; None where the table does not say.
        subsets: empty for all.
    """

    num_prompts: int | None
    max_new_tokens: int | None
    subsets: tuple[str, ...]

    @classmethod
    def read(cls, table: Mapping[str, Any], path: Path, where: str) -> BenchmarkLimits:
        """Checks a table's keys and values."""
        plain = {str(key).replace("_", "-"): value for key, value in table.items()}
        if len(plain) < len(table):
            raise UsageError(f"--matrix: {path}: {where}a key is there twice, under two of its names")
        for key, value in plain.items():
            if key not in _LIMITS:
                raise _unknown(path, key, _LIMITS, where)
            if key != "subset" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise _wrong(f"{path}: {where}{key!r}", value, "an integer of at least 1")
        subsets = plain.get("subset", [])
        subsets = [subsets] if isinstance(subsets, str) else subsets
        if not _is_texts(subsets):
            raise _wrong(f"{path}: {where}'subset'", subsets, "a name or a list of names")
        return cls(plain.get("num-prompts"), plain.get("max-new-tokens"), tuple(subsets))


def _with_limits(
    limits: Mapping[str, BenchmarkLimits], given: Mapping[str, Any], found: Mapping[str, Any]
) -> dict[str, Any]:
    """The tables as options; what the command line gives for the same thing wins."""
    if not limits:
        return {}
    options: dict[str, Any] = {}
    texts: Sequence[str] = given.get("benchmark_list") or found.get("benchmark_list") or list(limits)
    options["benchmark_list"] = [_limited(text, limits, counted="num_prompts" not in given) for text in texts]
    if "max_new_tokens" not in given:
        every = TokenLimits.parse(found.get("max_new_tokens"))
        named = {name: limit.max_new_tokens for name, limit in limits.items() if limit.max_new_tokens is not None}
        options["max_new_tokens"] = str(replace(every, named={**every.named, **named})) or None
    return options


def _limited(text: str, limits: Mapping[str, BenchmarkLimits], *, counted: bool) -> str:
    with contextlib.suppress(UsageError):  # what is no benchmark is refused where the list is read
        spec = BenchmarkSpec.parse(text)
        limit = limits.get(find(spec.name).name)
        if limit is not None:
            number = spec.num_prompts or (limit.num_prompts if counted else None)
            return str(replace(spec, num_prompts=number, subsets=spec.subsets or limit.subsets))
    return text


def _value(action: argparse.Action, value: Any, where: str) -> Any:
    """A file's value as the command line's parser would have given it."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise _wrong(where, value, "true or false")
        return value
    if action.nargs == "+" or isinstance(action, argparse._AppendAction):
        texts = [value] if isinstance(value, str) else value
        if not _is_texts(texts):
            raise _wrong(where, value, f"a list of texts, {action.metavar}")
        return list(texts)
    if action.metavar == "JSON" and isinstance(value, dict):
        return json.dumps(value)
    if action.choices is not None and value not in action.choices:
        raise _wrong(where, value, f"one of {', '.join(map(str, action.choices))}")
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if action.type is int:
        if not is_number:
            raise _wrong(where, value, "an integer")
        return value
    if action.type is float:
        if not is_number and not isinstance(value, float):
            raise _wrong(where, value, "a number")
        return float(value)
    if is_number and action.metavar in ("N", "IDS"):
        return str(value)
    if not isinstance(value, str):
        raise _wrong(where, value, "a text")
    return value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _wrong(where: str, value: Any, expected: str) -> UsageError:
    # A value may be large: YAML's aliases make much of little.
    found = reprlib.repr(value) if isinstance(value, (list, dict)) else json.dumps(value, default=str)
    return UsageError(f"--matrix: {where} is {found}; expected {expected}")


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__

"""From a benchmark spec to the prompts that are asked: the source is chosen, rows are read, drawn and rendered."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from specforge.datasets import files, hub
from specforge.datasets.definition import DatasetDefinition, Row, subset_key
from specforge.datasets.drawing import IndexedRow, Selection, draw, unique_ids
from specforge.datasets.model import Benchmark, Message, Prompt, Source
from specforge.datasets.options import FEW_SHOT_SUFFIX, LoadOptions
from specforge.datasets.registry import resolve, unknown_subset
from specforge.errors import DatasetError
from specforge.matrix import BenchmarkSpec


def load(spec: BenchmarkSpec, options: LoadOptions) -> Benchmark:
    """Draws the prompts of a benchmark spec.

    Raises:
        UsageError: an unknown dataset or subset.
        DatasetError: the rows can't be had, or one of them is not what the dataset's rows are.
    """
    definition = resolve(spec)
    rows = read_rows(definition, options, spec.subsets)
    drawn = draw(rows.questions, Selection.of(definition, spec.subsets), options.seed)
    if not drawn:
        raise DatasetError(f"{definition.name}: no rows for {spec} in {rows.source.location}")
    wanted = len(drawn) if spec.num_prompts is None else spec.num_prompts
    measured, others = drawn[:wanted], drawn[wanted : wanted + options.warmup]
    notes = list(rows.notes)
    if wanted > len(drawn):
        notes.append(f"{spec}: asked for {wanted} prompts, there are {len(drawn)}; all are taken")
    prompts = tuple(map(rows.render, measured))
    return Benchmark(
        name=definition.name,
        prompts=prompts,
        warmup=tuple(map(rows.render, others)) or prompts,
        max_new_tokens=definition.max_new_tokens,
        source=rows.source,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class DatasetRows:
    """A dataset's rows before any is drawn.

    Attributes:
        questions: the rows in the source's order.
        render: makes the prompt of one of them. Raises DatasetError for a malformed row.
        source: where they came from.
        notes: what the user should be told.
    """

    questions: list[IndexedRow]
    render: Callable[[IndexedRow], Prompt]
    source: Source
    notes: tuple[str, ...]


def read_rows(definition: DatasetDefinition, options: LoadOptions, subsets: Sequence[str] = ()) -> DatasetRows:
    """Reads a dataset from its local path, the samples or the Hub, whichever the options say.

    Args:
        subsets: the names asked for; rows outside them may be left out already, where the source keeps them apart.

    Raises:
        UsageError: a subset that the rows do not have.
        DatasetError: as :func:`load`.
    """
    selection = Selection.of(definition, subsets)
    read = _read_questions(definition, options, selection)
    _check_columns(definition, read)
    rows = [row for label, part in read.parts for row in _labelled(definition, label, part)]
    ids = unique_ids(map(definition.row_id, rows))
    questions = [IndexedRow(row_id, index, row) for index, (row_id, row) in enumerate(zip(ids, rows, strict=True))]
    _check_subsets(definition, selection, questions, read.source)
    examples, few_shot, notes = _examples(definition, options, read.source)
    source = Source(
        kind=read.source.kind,
        location=read.source.location,
        revision=read.source.revision,
        sha256=read.source.sha256,
        split=read.source.split,
        few_shot=few_shot,
    )

    def render(row: IndexedRow) -> Prompt:
        return _render(definition, row, examples, source)

    return DatasetRows(questions, render, source, notes)


@dataclass(frozen=True, slots=True)
class _Read:
    parts: Sequence[tuple[str, Sequence[Row]]]
    source: Source


def _read_questions(definition: DatasetDefinition, options: LoadOptions, selection: Selection) -> _Read:
    path = options.dataset_paths.get(definition.name)
    if path is not None:
        return _read_local(definition, Path(path), selection)
    if options.samples:
        return _read_samples(definition)
    return _read_hub(definition, options, selection)


def _read_local(definition: DatasetDefinition, path: Path, selection: Selection) -> _Read:
    split = definition.parts[0].split
    read = files.read_path(path, definition.parts, selection.labels())
    source = Source("file", str(path), sha256=read.sha256, split=split if path.is_dir() else path.stem)
    return _Read([(part.label, part.rows) for part in read.parts], source)


def _read_samples(definition: DatasetDefinition) -> _Read:
    name = f"samples/{definition.name}.jsonl"
    resource = resources.files("specforge.datasets").joinpath(name)
    if not resource.is_file():
        raise DatasetError(
            f"{definition.name}: there is no built-in sample of it; give --dataset-path {definition.name}=FILE"
        )
    content = resource.read_bytes()
    source = Source("sample", name, sha256=hashlib.sha256(content).hexdigest(), split="sample")
    return _Read([("", files.parse_rows(content, Path(name)))], source)


def _read_hub(definition: DatasetDefinition, options: LoadOptions, selection: Selection) -> _Read:
    labels = selection.labels()
    parts = [part for part in definition.parts if labels is None or subset_key(part.label) in labels]
    pinned = options.revision_of(definition.name)
    commits = {
        dataset: hub.resolve_revision(definition.name, dataset, pinned)
        for dataset in dict.fromkeys(part.dataset for part in parts)
    }
    read = [(part.label, hub.read_part(definition.name, part, commits[part.dataset])) for part in parts]
    several = len(commits) > 1
    source = Source(
        "hub",
        ", ".join(commits),
        revision=", ".join(f"{dataset}@{commit}" if several else commit for dataset, commit in commits.items()),
        split=parts[0].split,
    )
    return _Read(read, source)


def _labelled(definition: DatasetDefinition, label: str, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows, with what their part says of them as a column."""
    names = [axis.name for axis in definition.axes if axis.labelled]
    return [{**row, **dict.fromkeys(names, label)} for row in rows] if label and names else rows


def _check_columns(definition: DatasetDefinition, read: _Read) -> None:
    """Every row must have the dataset's columns; a file of another dataset is told apart by its first row."""
    for label, rows in read.parts:
        for place, row in enumerate(rows):
            for column in definition.columns:
                if not any(name in row for name in column.split("|")):
                    where = f"{read.source.location}{f' ({label})' if label else ''}, row {place}"
                    raise DatasetError(
                        f"{definition.name}: {where}: no column {column.replace('|', ' or ')!r}; "
                        f"found {', '.join(map(str, row))}"
                    )


def _check_subsets(
    definition: DatasetDefinition, selection: Selection, rows: Iterable[IndexedRow], source: Source
) -> None:
    """A name that no row has is an error, whatever was known before the rows were read."""
    present: list[dict[str, str]] = [{} for _ in definition.axes]
    for row in rows:
        for values, axis in zip(present, definition.axes, strict=True):
            value = axis.of(row.row)
            values.setdefault(subset_key(value), value)
    asked = {name for names in selection.requests for name, _ in names}
    for name in sorted(asked):
        found = any(
            name == request and not wanted.isdisjoint(values)
            for values, requests in zip(present, selection.requests, strict=True)
            for request, wanted in requests
        )
        if not found:
            known = tuple(value for values in present for key, value in sorted(values.items()) if key)
            if not known:
                raise DatasetError(
                    f"{definition.name}: nothing in {source.location} says which rows are {name!r}; "
                    "leave the subset out, or name the file after it"
                )
            raise unknown_subset(definition, name, known)


def _examples(
    definition: DatasetDefinition, options: LoadOptions, source: Source
) -> tuple[tuple[Message, ...], str | None, tuple[str, ...]]:
    """The few-shot turns, how the record names them, and what to tell the user."""
    few_shot = definition.few_shot
    if few_shot is None:
        if options.few_shot:
            return (), None, (f"{definition.name}: takes no few-shot examples; asked for {options.few_shot}",)
        return (), None, ()
    count = few_shot.count if options.few_shot is None else options.few_shot
    if not count:
        return (), None, ()
    rows = _few_shot_rows(definition, options, source)
    if rows is None:
        if options.few_shot:
            raise DatasetError(
                f"{definition.name}: {count} few-shot examples asked for, but the questions come from "
                f"{source.location}; give --dataset-path {definition.name}{FEW_SHOT_SUFFIX}=FILE"
            )
        return (), None, ()
    if len(rows) < count:
        raise DatasetError(f"{definition.name}: {count} few-shot examples asked for, {few_shot.split} has {len(rows)}")
    messages = []
    for row in rows[:count]:
        user, assistant = few_shot.turns(row)
        messages += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    return tuple(messages), f"{count} from {few_shot.split}", ()


def _few_shot_rows(definition: DatasetDefinition, options: LoadOptions, source: Source) -> Sequence[Row] | None:
    """The rows of the few-shot split; None where the questions are local and no examples were given with them."""
    assert definition.few_shot is not None
    split = definition.few_shot.split
    part = definition.parts[0].at_split(split)
    given = options.dataset_paths.get(definition.name + FEW_SHOT_SUFFIX)
    if given is not None:
        return [row for file in files.read_path(Path(given), (part,)).parts for row in file.rows]
    if source.kind == "file" and files.has_split(Path(source.location), split):
        return [row for file in files.read_path(Path(source.location), (part,)).parts for row in file.rows]
    if source.kind == "hub" and source.revision is not None:
        return hub.read_part(definition.name, part, source.revision)
    return None


def _render(definition: DatasetDefinition, row: IndexedRow, examples: tuple[Message, ...], source: Source) -> Prompt:
    try:
        question = definition.question(row.row)
    except KeyError as error:
        raise DatasetError(f"{definition.name}: {source.location}, row {row.index}: no value for {error}") from None
    except DatasetError as error:
        raise DatasetError(f"{definition.name}: {source.location}, row {row.index}: {error}") from None
    return Prompt(
        row_id=row.row_id,
        index=row.index,
        messages=question.messages(examples),
        followups=question.followups,
        reference=question.reference,
        subset=definition.axes[0].of(row.row) if definition.axes else "",
        category=question.category,
        has_image=not isinstance(question.content, str),
    )

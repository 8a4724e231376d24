"""Keeps the built-in samples out of the training text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any


def identities(dataset: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts that make a row this row; two rows that share one are the same to the hold-out.

    Options, tests and examples don't count: a question asked with other options is the same question.
    """
    if dataset in ("mtbench", "chat"):
        return tuple(row["prompt"][:1])
    if dataset == "humaneval":
        return (row["prompt"].partition(">>>")[0].strip(),)
    if dataset == "livecodebench":
        return (f"{row['question_content']}\n{row['starter_code']}".strip(),)
    if dataset == "mmstar":
        return ()  # no training text has a picture
    if dataset == "financeqa":
        return (f"{row['context']} {row['question']}",)
    column = {"math500": "problem", "aime": "Problem", "mbpp": "prompt", "gpqa": "Question", "simpleqa": "problem"}
    return (row[column.get(dataset, "question")],)


def sample_rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """The built-in samples as (dataset, row)."""
    for file in sorted(files("specforge.datasets").joinpath("samples").iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".jsonl"):
            for line in file.read_text(encoding="utf-8").splitlines():
                yield file.name.removesuffix(".jsonl"), json.loads(line)


def held_out() -> frozenset[str]:
    """What no training example may ask, whatever the dataset that it is asked for."""
    return frozenset(text for dataset, row in sample_rows() for text in identities(dataset, row))

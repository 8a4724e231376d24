"""What a dataset is to the harness: mostly data, so that adding one touches one file of the catalog."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specforge.datasets.model import Message

Row = Mapping[str, Any]
"""One row as the Hub or a file gives it: column name to value."""


@dataclass(frozen=True, slots=True)
class HubPart:
    """One piece of a dataset on the Hub: a configuration's split, or files of its repository.

    Attributes:
        dataset: the Hub's dataset id.
        split: the split that the questions come from.
        config: the Hub's configuration; None for its only one.
        files: files of the repository to read instead of a configuration (for a repository that is a loading script).
        label: the subset that all rows of this part belong to; empty where the rows say it themselves.
    """

    dataset: str
    split: str
    config: str | None = None
    files: tuple[str, ...] = ()
    label: str = ""

    def at_split(self, split: str) -> HubPart:
        """The same part's other split."""
        return replace(self, split=split)


@dataclass(frozen=True, slots=True)
class SubsetAxis:
    """One way to divide a dataset, such as by subject.

    Attributes:
        name: what the division is by, for messages.
        of: the row's value; empty where the row does not say.
        values: all values where they are known without reading the dataset, in their published order; else None.
        groups: names for several values at once.
        default: the values taken where the user names none of this axis; empty for all.
        labelled: whether it is the label of a row's part that says the value: rows are given a column of the axis's
            name that holds it.
    """

    name: str
    of: Callable[[Row], str]
    values: tuple[str, ...] | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default: tuple[str, ...] = ()
    labelled: bool = False

    def expand(self, name: str) -> tuple[str, ...] | None:
        """The values that a user's name stands for; None where this axis has no such name.

        Upper and lower case, spaces and punctuation do not matter, and the axis may be said: ``level 5`` is ``5``.
        On an axis whose values only the rows tell, every name stands for itself.
        """
        keys = (subset_key(name), subset_key(subset_key(name).removeprefix(self.name)))
        for group, members in self.groups.items():
            if subset_key(group) in keys:
                return members
        if self.values is None:
            return (name,)
        return next(((value,) for value in self.values if subset_key(value) in keys), None)


@dataclass(frozen=True, slots=True)
class FewShot:
    """Where worked examples come from; never the split of the questions.

    Attributes:
        split: the split's name.
        count: examples in a prompt unless the user says otherwise.
        turns: a row of that split as the user's and the assistant's text.
    """

    split: str
    count: int
    turns: Callable[[Row], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Question:
    """What one row becomes, before few-shot examples stand in front of it.

    Attributes:
        content: the user's first message: text, or content parts where there is an image.
        reference: what the scorer compares with; None where the row has none.
        followups: the user's later turns.
        system: a system message; empty for none.
        category: the group that results are reported by.
    """

    content: str | tuple[Mapping[str, Any], ...]
    reference: Any = None
    followups: tuple[str, ...] = ()
    system: str = ""
    category: str = ""

    def messages(self, examples: tuple[Message, ...] = ()) -> tuple[Message, ...]:
        """The first request's messages."""
        system: tuple[Message, ...] = ({"role": "system", "content": self.system},) if self.system else ()
        content = self.content if isinstance(self.content, str) else list(self.content)
        return (*system, *examples, {"role": "user", "content": content})


@dataclass(frozen=True, slots=True)
class DatasetDefinition:
    """A dataset: where it is, how a row is asked, and how an answer is scored.

    Attributes:
        name: as on the command line.
        parts: where its rows are on the Hub.
        question: turns a row into what is asked. A row that it can't read raises DatasetError or KeyError.
        row_id: the row's stable name.
        columns: what every row must have; alternatives are joined by ``|``, as in ``prompt|text``.
        scorer: the kind of scoring: ``math``, ``number``, ``choice``, ``finance``, ``qa``, ``code``, ``conversation``.
        max_new_tokens: the limit for one answer, with room for reasoning models.
        axes: how it is divided; the first one is what a draw without subsets goes through in turn.
        few_shot: worked examples, where the field's prompt has them.
        images: whether its prompts hold images, which a text-only server refuses.
        aliases: other names it is known by.
    """

    name: str
    parts: tuple[HubPart, ...]
    question: Callable[[Row], Question]
    row_id: Callable[[Row], str]
    columns: tuple[str, ...]
    scorer: str
    max_new_tokens: int
    axes: tuple[SubsetAxis, ...] = ()
    few_shot: FewShot | None = None
    images: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def subset_names(self) -> tuple[str, ...]:
        """Every subset name that is known without reading the dataset, groups first."""
        return tuple(name for axis in self.axes for name in (*axis.groups, *(axis.values or ())))


def subset_key(name: str) -> str:
    """A subset's name as it is compared: lower case, runs of other characters than letters and digits as ``_``."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def text_id(*texts: str) -> str:
    """A row id for datasets without one: the first 16 hex digits of the SHA-256 of the question's text."""
    return hashlib.sha256("\x1f".join(texts).encode()).hexdigest()[:16]


def first_column(row: Row, *names: str) -> Any:
    """The value of the first of these columns that the row has.

    Raises:
        KeyError: it has none of them.
    """
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise KeyError("|".join(names))

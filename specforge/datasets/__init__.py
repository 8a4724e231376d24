"""The datasets: one module each in :mod:`specforge.datasets.catalog`, one registry, and how rows become prompts.

definition = resolve(spec)                       # UsageError for an unknown dataset or subset
benchmark = load(spec, LoadOptions(seed=0))      # the prompts drawn, with where they came from
scorer = make_scorer(definition, ScoringOptions())
"""

from specforge.datasets.definition import DatasetDefinition
from specforge.datasets.loading import load, read_rows
from specforge.datasets.model import Benchmark, Message, Prompt, Source
from specforge.datasets.options import LoadOptions, parse_dataset_paths
from specforge.datasets.registry import find, known_names, resolve
from specforge.datasets.scorers import ScoringOptions, make_scorer, unscored_reason

__all__ = [
    "Benchmark",
    "DatasetDefinition",
    "LoadOptions",
    "Message",
    "Prompt",
    "ScoringOptions",
    "Source",
    "find",
    "known_names",
    "load",
    "make_scorer",
    "parse_dataset_paths",
    "read_rows",
    "resolve",
    "unscored_reason",
]

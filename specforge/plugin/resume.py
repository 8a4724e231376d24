"""``--resume RUN``: a run that was cut off goes on in its own files; only what it lacks is measured.

A run's JSON says under ``asked`` what was asked of it. A cell is kept where its record is whole (``ok``, or ``skipped``
for a reason that lasts) and its rows are the record's; every other cell is measured, and its record takes the old
one's place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specforge.client.control import ControlClient
from specforge.datasets import load
from specforge.datasets.model import Benchmark
from specforge.errors import RecordError, SpecForgeError, UsageError
from specforge.load.prepare import static_hash
from specforge.measurement.environment import without_secrets
from specforge.plugin.entries import ASKED, CellEntry, entries_of
from specforge.results.cell import Cell
from specforge.results.load import read_json
from specforge.results.pairing import Pair, asked_differently, different_machines
from specforge.results.record import CellRecord
from specforge.results.relate import rows_path
from specforge.results.rows import sha256_of
from specforge.results.run_file import RunFiles

if TYPE_CHECKING:
    from specforge.plugin.settings import Settings

_KEPT = ("ok", "skipped")
_MAY_CHANGE = {"launched_with"}  # what is served is told to be different, and not refused: it may be why a cell failed


def asked_of(settings: Settings, rounds: int) -> dict[str, Any]:
    """What a run asks, as its JSON says it: plain values, without keys or passwords."""
    launch = settings.launch
    named = launch if settings.backend == "launch" else None  # the embedded engine's models come with it
    return {
        "configs": list(map(str, settings.configs)),
        "benchmarks": list(map(str, settings.benchmarks)),
        "backend": settings.backend,
        "model_path": named.model_path if named is not None else None,
        "speculative_draft_model_path": named.speculative_draft_model_path if named is not None else None,
        "speculative_algorithm": launch.speculative_algorithm if launch is not None else None,
        "sampling": settings.sampling.as_record(),
        "max_new_tokens": str(settings.max_new_tokens),
        "rounds": rounds,
        "stream": settings.stream,
        "seed": settings.load.seed,
        "dataset_revision": settings.load.revision,
        "few_shot": settings.load.few_shot,
        "launched_with": without_secrets([*launch.launch_command, *launch.server_args]) if launch is not None else None,
    }


@dataclass(frozen=True)
class Resumed:
    """A run that goes on.

    Attributes:
        files: its files.
        asked: what was asked of it; see :func:`asked_of`.
        entries: every cell of its JSON.
        kept: the tests (:func:`specforge.plugin.entries.test_of`) whose cells are kept.
        why: by each other test in the JSON, why its cell is measured again.
        machine: pytest-benchmark's ``machine_info``.
    """

    files: RunFiles
    asked: Mapping[str, Any]
    entries: Sequence[CellEntry]
    kept: tuple[str, ...]
    why: Mapping[str, str]
    machine: Mapping[str, Any]

    @property
    def matrix(self) -> dict[str, list[str]]:
        """The run's matrix, by the options that give it."""
        return {"config_list": self.asked["configs"], "benchmark_list": self.asked["benchmarks"]}

    def check(self, settings: Settings, rounds: int) -> None:
        """Refuses to mix what was asked differently.

        Raises:
            UsageError: naming what differs.
        """
        for name, now in asked_of(settings, rounds).items():
            before = self.asked.get(name)
            if before != now and name not in _MAY_CHANGE:
                raise UsageError(
                    f"--resume: {self.files.json_path} was asked something else: {name} was {before!r} and is {now!r}"
                )
        for endpoint in settings.endpoints:
            self._check_model(ControlClient(endpoint), endpoint.base_url)

    def _check_model(self, control: ControlClient, url: str) -> None:
        models = {(entry.record["environment"].get("server") or {}).get("model_path") for entry in self._kept_entries}
        try:
            now = ((control.server_info() if models else None) or {}).get("model_path")
        except SpecForgeError:
            return  # the measurement says better what is wrong with the server
        finally:
            control.close()
        if now is not None and models - {None, now}:
            raise UsageError(f"--resume: {url} serves {now!r}, and the run measured {', '.join(map(str, models))}")

    def check_prompts(self, settings: Settings) -> None:
        """Refuses kept cells whose prompts are not those that would be asked now.

        Raises:
            RecordError: naming the cell and what differs.
            DatasetError, UsageError: the prompts can't be had.
        """
        names = {entry.record["benchmark"]["spec"] for entry in self._kept_entries}
        drawn = {str(spec): load(spec, settings.load) for spec in settings.benchmarks if str(spec) in names}
        for entry in self._kept_entries:
            difference = asked_differently(_as_now(entry, drawn[entry.record["benchmark"]["spec"]], settings))
            if difference is not None:
                raise RecordError(f"--resume: {self.files.json_path}: {Cell(entry.record).label}: {difference}")

    @property
    def _kept_entries(self) -> list[CellEntry]:
        return [entry for entry in self.entries if entry.test in self.kept]

    def is_complete(self, settings: Settings) -> bool:
        """Whether every cell of the matrix is kept."""
        return {entry.param for entry in self._kept_entries} >= set(cell_ids(settings))

    def header(self, settings: Settings) -> str:
        """One line: how much is kept, and how much is measured, and why."""
        wanted = cell_ids(settings)
        kept = sum(entry.param in wanted for entry in self._kept_entries)
        again = [self.why[entry.test] for entry in self.entries if entry.test in self.why]
        parts = [f"{again.count(reason)} {reason}" for reason in dict.fromkeys(again)]
        missing = len(wanted) - kept - len(again)
        parts += [f"{missing} missing"] if missing > 0 else []
        return f"specforge: resuming {self.files.folder}; cells kept: {kept}, to measure: {', '.join(parts) or 'none'}"

    def warnings(self, settings: Settings, rounds: int, machine: Mapping[str, Any]) -> list[str]:
        """What differs around the cells that are kept and those that are measured now, one line each."""
        before, now = (asked.get("launched_with") for asked in (self.asked, asked_of(settings, rounds)))
        found = different_machines(self.machine, machine) if self.kept else []
        if self.kept and before != now:
            found.append(f"servers are launched otherwise than before: {_words(before)} against {_words(now)}")
        return [f"resumed: {text}" for text in found]


def how_it_went_on(record: CellRecord) -> str | None:
    """What a resumed cell has from its rows and what was measured anew, in words; None for any other cell."""
    resumed = record["environment"].get("resumed")
    if resumed is None:
        return None
    kept, anew = resumed["rounds_from_rows"], resumed["rounds_measured_anew"]
    parts = [f"{_rounds(kept)} from the rows, answers and times"] if kept else []
    parts += [f"{_rounds(anew)} measured anew"] if anew else []
    parts += [f"{resumed['rows_superseded']} rows superseded"] if resumed["rows_superseded"] else []
    parts += ["rows of another server or machine count for nothing"] if resumed["other_conditions"] else []
    parts += ["the last row was cut, and is gone"] if resumed["last_row_was_cut"] else []
    return f"{Cell(record).label}: {'; '.join(parts)}"


def _rounds(numbers: Sequence[int]) -> str:
    return f"round{'s' if len(numbers) > 1 else ''} {', '.join(str(number + 1) for number in numbers)}"


def _words(command: Sequence[str] | None) -> str:
    return repr(" ".join(command or ()))


def cell_ids(settings: Settings) -> list[str]:
    """The matrix's cells as tests are parametrized with them, in order."""
    return [f"{config}-{spec}" for config in settings.configs for spec in settings.benchmarks]


def _as_now(entry: CellEntry, drawn: Benchmark, settings: Settings) -> Pair:
    """The kept cell beside one that asks what would be asked now; token ids are known to servers only."""
    source = {name: getattr(drawn.source, name) for name in ("kind", "location", "revision", "split", "few_shot")}
    now = {
        "sampling": settings.sampling.as_record(),
        "max_new_tokens": settings.max_new_tokens.of(drawn.name, drawn.max_new_tokens),
        "source": source,
        "row_ids": [prompt.row_id for prompt in drawn.prompts],
        "hashes": {"static_turns": list(map(static_hash, drawn.prompts))},
    }
    return Pair(Cell(entry.record), Cell({**entry.record, "benchmark": now}))


def read_resumed(reference: str) -> Resumed:
    """Reads the run of ``--resume``: its JSON, or the folder beside it.

    Raises:
        UsageError: that is no run.
        RecordError: its JSON can't be read.
    """
    files = _files_of(Path(reference).expanduser())
    document = read_json(files.json_path)
    asked = document.get(ASKED) if isinstance(document, dict) else None
    if not isinstance(asked, dict) or not all(_is_texts(asked.get(name)) for name in ("configs", "benchmarks")):
        raise RecordError(f"--resume: {files.json_path}: no run of `pytest bench_tests` (it has no {ASKED!r})")
    entries = entries_of(document, files.json_path)
    why = {entry.test: reason for entry in entries if (reason := _why_again(entry, files)) is not None}
    kept = tuple(entry.test for entry in entries if entry.test not in why)
    return Resumed(files, asked, entries, kept, why, document.get("machine_info") or {})


def _is_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(text, str) for text in found)


def _files_of(path: Path) -> RunFiles:
    path = path if path.name else path.absolute()  # "." is a folder as well
    files = RunFiles(path.with_name(path.name.removesuffix(".json")))
    if not path.exists() or not files.json_path.is_file():
        raise UsageError(
            f"--resume: {str(path)!r} is no run; expected its JSON, or the folder of the same name beside it"
        )
    return files


def _why_again(entry: CellEntry, files: RunFiles) -> str | None:
    record = entry.record
    if record["status"] not in _KEPT:
        return record["status"]
    path = rows_path(record, files.json_path.parent)
    if path is None:
        return "without rows"
    return None if sha256_of(path) == (record["rows"] or {}).get("sha256") else "with other rows than were recorded"

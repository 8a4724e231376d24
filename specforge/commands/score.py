"""``specforge score``: scores saved outputs without a server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from specforge.datasets import (
    DatasetDefinition,
    LoadOptions,
    Prompt,
    ScoringOptions,
    make_scorer,
    parse_dataset_paths,
    read_rows,
    resolve,
    unscored_reason,
)
from specforge.datasets.drawing import Selection
from specforge.datasets.loading import DatasetRows
from specforge.errors import DatasetError, UsageError
from specforge.matrix import BenchmarkSpec
from specforge.measurement.review import answer_of
from specforge.metrics.accuracy import accuracy_metrics
from specforge.scoring.grades import mean_grades
from specforge.scoring.sandbox.settings import KINDS, SandboxSettings
from specforge.scoring.score import Answer, Score

_DESCRIPTION = """\
Scores saved outputs against a dataset's references.

FILE holds one JSON object a line: {"index": row number in the file or dataset, from 0, "output": "text"}, or a list of
texts for a conversation. The harness's own rows files (results/.../*.jsonl) are read too. An index may come several
times; accuracy is then the mean over questions of each question's share of right answers.
"""
_EPILOG = """\
examples:
  specforge score gsm8k --outputs outputs.jsonl
  specforge score humaneval --outputs outputs.jsonl --allow-code-execution --json scores.json
  specforge score ceval::law,accountant --outputs outputs.jsonl --dataset-path ceval=rows/
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "score",
        help="score saved outputs without a server",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the dataset, or NAME::SUBSET,... to read only these from the Hub")
    parser.add_argument("--outputs", required=True, metavar="FILE", help="the outputs, JSON lines")
    parser.add_argument(
        "--dataset-path",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="the dataset's rows, a file or a folder",
    )
    parser.add_argument("--samples", action="store_true", help="score against the built-in sample rows")
    parser.add_argument("--dataset-revision", metavar="REVISION", help="the Hub's revision")
    parser.add_argument("--judge-base-url", metavar="URL", help="OpenAI-compatible endpoint of a judge model")
    parser.add_argument("--judge-model", metavar="NAME", help="the judge's name there")
    parser.add_argument("--judge-api-key", metavar="KEY", help="the judge's key")
    parser.add_argument("--allow-code-execution", action="store_true", help="run model-written code, in a sandbox")
    parser.add_argument(
        "--unsafe-code-execution", action="store_true", help="also where nothing isolates it from this machine"
    )
    parser.add_argument("--code-sandbox", choices=KINDS, default="auto", help="what isolates it (default: auto)")
    code = SandboxSettings()
    parser.add_argument(
        "--code-timeout", type=float, default=code.wall_s, metavar="SECONDS", help="limit for one program"
    )
    parser.add_argument("--code-memory", type=int, default=code.memory_mb, metavar="MIB", help="memory of one program")
    parser.add_argument("--code-workers", type=int, metavar="N", help="programs at a time (default: one a processor)")
    parser.add_argument("--json", metavar="OUT", help="write the result as one JSON object as well")


def run(args: argparse.Namespace) -> int:
    """Scores, prints, and writes the JSON file.

    Returns:
        0 whenever scoring completed, whatever the accuracy.

    Raises:
        UsageError, DatasetError: a file is not what it should be, or the dataset can't be scored with these options.
    """
    spec = BenchmarkSpec.parse(args.name, flag="NAME")
    if spec.num_prompts is not None:
        raise UsageError(f"NAME: {args.name!r} has a number of prompts; the outputs say which rows are scored")
    definition = resolve(spec, flag="NAME")
    scoring = ScoringOptions(
        judge_base_url=args.judge_base_url,
        judge_model=args.judge_model,
        judge_api_key=args.judge_api_key,
        allow_code_execution=args.allow_code_execution,
        sandbox=SandboxSettings(
            kind=args.code_sandbox,
            unsafe=args.unsafe_code_execution,
            wall_s=args.code_timeout,
            memory_mb=args.code_memory,
            workers=args.code_workers,
        ),
    )
    scorer = make_scorer(definition, scoring)
    if scorer is None:
        raise UsageError(f"{definition.name}: {unscored_reason(definition, scoring)}")
    rows = read_rows(
        definition,
        LoadOptions(
            dataset_paths=parse_dataset_paths(args.dataset_path),
            revision=args.dataset_revision,
            samples=args.samples,
            few_shot=0,
        ),
        spec.subsets,
    )
    saved = list(read_outputs(Path(args.outputs), definition, rows, Selection.of(definition, spec.subsets)))
    scores = scorer.score_all([output.answer for output in saved])
    result = summarize(definition, scorer.name, saved, scores) | {"source": asdict(rows.source)}
    if args.json:
        _write(Path(args.json), result)
    sys.stdout.write(report(result))
    return 0


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """One output of the file: the row it answers, as a scorer wants it, and its request's status."""

    index: int
    answer: Answer
    status: str


def read_outputs(
    path: Path, definition: DatasetDefinition, rows: DatasetRows, selection: Selection
) -> Iterator[SavedOutput]:
    """The outputs of a file in order; rows that a repeated round superseded, and skipped ones, are left out.

    Raises:
        UsageError: the file is not there, or a line is not an output.
        DatasetError: a line names a row that the dataset does not have.
    """
    prompts: dict[int, Prompt] = {}
    places = {row.row_id: row.index for row in rows.questions}

    def prompt(index: int) -> Prompt:
        if index not in prompts:
            prompts[index] = rows.render(rows.questions[index])
        return prompts[index]

    found = False
    for number, line in _lines(path):
        where = f"--outputs: {path}, line {number}"
        found = True
        if "turns" in line:
            if line.get("superseded") or line.get("status") == "skipped":
                continue
            index = places.get(str(line.get("row_id")))
            if index is None:
                raise DatasetError(
                    f"{where}: {definition.name} has no row {line.get('row_id')!r} in {rows.source.location}"
                )
            yield SavedOutput(index, _own_row(line, prompt(index), where), str(line.get("status", "ok")))
            continue
        index = _index(line, len(rows.questions), where, definition, rows)
        if selection.turn(rows.questions[index]) is None:
            raise DatasetError(f"{where}: row {index} of {definition.name} is in none of the subsets asked for")
        yield SavedOutput(index, _plain_row(line, prompt(index), where), "ok")
    if not found:
        raise UsageError(f"--outputs: {path}: no outputs in this file")


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                try:
                    line = orjson.loads(text)
                except orjson.JSONDecodeError as error:
                    raise UsageError(f"--outputs: {path}, line {number}: not JSON: {error}") from None
                if not isinstance(line, dict):
                    raise UsageError(
                        f"--outputs: {path}, line {number}: found {type(line).__name__}, expected an object"
                    )
                yield number, line
    except OSError as error:
        raise UsageError(f"--outputs: {path}: {error.strerror or error}") from None


def _index(line: Mapping[str, Any], count: int, where: str, definition: DatasetDefinition, rows: DatasetRows) -> int:
    index = line.get("index")
    if isinstance(index, bool) or not isinstance(index, int):
        raise UsageError(f"{where}: 'index' is {index!r}; expected a row number")
    if not 0 <= index < count:
        raise DatasetError(
            f"{where}: index {index} is outside {definition.name}; {rows.source.location} has rows 0 to {count - 1}"
        )
    return index


def _plain_row(line: Mapping[str, Any], prompt: Prompt, where: str) -> Answer:
    output = line.get("output")
    texts = [output] if isinstance(output, str) else output
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where}: 'output' is {type(output).__name__}; expected a text, or a list of texts by turn")
    reason = "length" if line.get("finish_reason") == "length" or line.get("truncated") is True else "stop"
    turns = [{"text": text, "finish_reason": reason} for text in texts]
    return answer_of({"turns": turns, "status": "ok"}, prompt)


def _own_row(line: dict[str, Any], prompt: Prompt, where: str) -> Answer:
    try:
        return answer_of({"status": "ok", **line}, prompt)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{where}: not a row of the harness: {error!r}") from None


def summarize(
    definition: DatasetDefinition, scorer: str, saved: Sequence[SavedOutput], scores: Sequence[Score]
) -> dict[str, Any]:
    """The result as plain data: the totals, and a line for each output in input order."""
    measured = accuracy_metrics(
        [output.answer.row_id for output in saved],
        [score.correct for score in scores],
        [score.answer is None for score in scores],
        [output.answer.truncated for output in saved],
        [output.status for output in saved],
    )
    counts = measured["accuracy_counts"] or {}
    rows = []
    for output, score in zip(saved, scores, strict=True):
        row: dict[str, Any] = {
            "index": output.index,
            "correct": score.correct,
            "answer": score.answer,
            "reason": score.reason,
        }
        if score.grade is not None:
            row |= {"grade": score.grade, "category": output.answer.category}
        if score.details:
            row["details"] = score.details
        rows.append(row)
    return {
        "dataset": definition.name,
        "scorer": scorer,
        "accuracy": measured["accuracy"],
        "accuracy_interval": measured["accuracy_interval"],
        "correct": counts.get("correct", 0),
        "total": len(saved),
        "questions": len({output.index for output in saved}),
        "unparsed": counts.get("unparsed", 0),
        "truncated": counts.get("truncated", 0),
        "errors": counts.get("failed", 0) + counts.get("too_long", 0),
        "no_verdict": sum(score.correct is None and score.grade is None for score in scores),
        "grades": mean_grades((output.answer.category, score) for output, score in zip(saved, scores, strict=True)),
        "rows": rows,
    }


def report(result: Mapping[str, Any]) -> str:
    """The result for a terminal."""
    accuracy, interval, grades = result["accuracy"], result["accuracy_interval"], result["grades"]
    shown = "-" if accuracy is None else f"{accuracy:.4f}"
    if interval is not None:
        shown += f"  (95 % interval {interval[0]:.4f} to {interval[1]:.4f})"
    lines = [("dataset", result["dataset"]), ("scorer", result["scorer"]), ("accuracy", shown)]
    lines += [(name, result[name]) for name in ("correct", "total", "unparsed", "truncated", "errors")]
    if result["no_verdict"]:
        lines.append(("no verdict", result["no_verdict"]))
    if grades is not None:
        lines.append(("grade", f"{grades['mean']:.2f} of 10"))
        lines += [(f"  turn {turn}", f"{mean:.2f}") for turn, mean in grades["by_turn"].items()]
        lines += [(f"  {category}", f"{mean:.2f}") for category, mean in grades["by_category"].items()]
    width = max(len(name) for name, _ in lines) + 2
    return "".join(f"{name:<{width}}{value}\n" for name, value in lines)


def _write(path: Path, result: Mapping[str, Any]) -> None:
    try:
        path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise UsageError(f"--json: {path}: {error.strerror or error}") from None

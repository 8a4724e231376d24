"""Drew the built-in samples that come from the families: ``python -m tools.pair.samples FOLDER``.

The rows are frozen in specforge/datasets/samples; drawing again is only for somebody who changes the families.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tools.pair.example import Example
from tools.pair.families import choices, dialogues, programs, sums
from tools.pair.holdout import identities

ROWS = 16
SOURCES: dict[str, Callable[[Random], Example]] = {
    "gsm8k": sums.story,
    "math500": sums.problem,
    "aime": sums.contest,
    "humaneval": programs.stub,
    "mbpp": programs.in_words,
    "livecodebench": programs.contest,
    "mmlu": choices.general,
    "ceval": choices.chinese,
    "gpqa": choices.science,
    "mtbench": dialogues.conversation,
    "simpleqa": dialogues.fact,
    "financeqa": dialogues.finance,
}


def numbered(dataset: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
    """The row with the columns filled in that name it."""
    own: dict[str, dict[str, Any]] = {
        "math500": {"unique_id": f"sample/{number}"},
        "aime": {"ID": f"2024-S-{number}"},
        "humaneval": {"task_id": f"Sample/{number}"},
        "mbpp": {"task_id": number, "source_file": "sample"},
        "livecodebench": {"question_id": f"sample_{number}", "question_title": f"Sample {number}"},
        "ceval": {"id": number},
        "gpqa": {"Record ID": f"sample{number}"},
        "mtbench": {"prompt_id": number},
    }
    return {**row, **own.get(dataset, {})}


def draw(dataset: str, count: int = ROWS) -> list[dict[str, Any]]:
    """``count`` rows, no two of which ask the same."""
    random = Random(f"{dataset} samples")
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    while len(rows) < count:
        row = dict(SOURCES[dataset](random).row)
        names = identities(dataset, row)
        if seen.isdisjoint(names):
            seen.update(names)
            rows.append(numbered(dataset, len(rows), row))
    return rows


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for dataset in SOURCES:
        lines = (json.dumps(row, ensure_ascii=False) for row in draw(dataset, 20 if dataset == "gsm8k" else ROWS))
        (folder / f"{dataset}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

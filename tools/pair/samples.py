"""Draws the built-in samples: ``python -m tools.pair.samples FOLDER``.

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
from tools.pair.pictures import rows as pictures

ROWS = {"gsm8k": 20, "mmstar": 10}
USUAL_ROWS = 16
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


def draw(dataset: str) -> list[dict[str, Any]]:
    """The dataset's rows, no two of which ask the same."""
    count = ROWS.get(dataset, USUAL_ROWS)
    if dataset == "mmstar":
        return pictures(count)
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
    for dataset in (*SOURCES, "mmstar"):
        lines = (json.dumps(row, ensure_ascii=False) for row in draw(dataset))
        (folder / f"{dataset}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Does the gate tell noise from loss? Thousands of simulated pairs of runs, judged as real ones are.

Six cells, three metrics. Rounds of a cell vary by 3 % (lognormal). Requests are heavy-tailed: the number of tokens is
lognormal with σ = 1, and an answer that took another turn in one of the runs has other tokens and steps. 6 % of the
answers are on the edge: right or wrong by the flip of a coin in each run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specforge.results.cell import Cell
from specforge.results.gate import GateResult, Verdict, gate
from specforge.results.pairing import Pair
from specforge.results.tolerance import parse_tolerances

TRIALS = 500
CELLS = 6
PROMPTS = 500
NOISE = 0.03
TOLERANCES = parse_tolerances(["throughput:5%", "acceptance_length:2%", "accuracy:2pp"])

pytestmark = pytest.mark.slow


class Simulation:
    """Pairs of runs of one distribution, but for the losses asked for in the first cell."""

    def __init__(self, seed: int, rounds: int) -> None:
        self.random = np.random.default_rng(seed)
        self.rounds = rounds

    def run(self, *, throughput: float = 0.0, acceptance: float = 0.0, accuracy: float = 0.0) -> GateResult:
        """One pair of runs through the gate; losses as fractions of the base value, of accuracy in points."""
        pairs = []
        for number in range(CELLS):
            lost = (throughput, acceptance, accuracy) if number == 0 else (0.0, 0.0, 0.0)
            pairs.append(self._pair(number, *lost))
        return gate(pairs, TOLERANCES)

    def _pair(self, number: int, throughput: float, acceptance: float, accuracy: float) -> Pair:
        random = self.random
        tokens = np.ceil(random.lognormal(5, 1, PROMPTS))
        steps = np.ceil(tokens / random.uniform(1.5, 3.8, PROMPTS))
        # Near-ties flip for honest reasons: a third of the answers go another way in each run.
        sides = []
        truth = random.random(PROMPTS) < 0.7
        on_the_edge = random.random(PROMPTS) < 0.06
        for side in range(2):
            other = random.random(PROMPTS) < 1 / 3
            their_tokens = np.where(other, np.ceil(tokens * random.lognormal(0, 0.3, PROMPTS)), tokens)
            their_steps = np.ceil(
                their_tokens / tokens * steps * np.where(other, random.lognormal(0, 0.15, PROMPTS), 1)
            )
            right = np.where(on_the_edge, random.random(PROMPTS) < 0.5, truth)
            level = 100.0 * (number + 1)
            if side:
                their_steps = np.ceil(their_steps / (1 - acceptance))
                right[random.choice(np.flatnonzero(right), round(accuracy * PROMPTS), replace=False)] = False
                level *= 1 - throughput
            sides.append(
                self._cell(number, level * random.lognormal(0, NOISE, self.rounds), their_tokens, their_steps, right)
            )
        return Pair(*sides)

    def _cell(self, number: int, rounds: Any, tokens: Any, steps: Any, right: Any) -> Cell:
        record: dict[str, Any] = {
            "config": {"batch_size": number + 1, "num_steps": 3, "topk": 1, "num_draft_tokens": 4},
            "benchmark": {"spec": "simulated:500", "name": "simulated", "subset": [], "scorer": "math"},
            "metrics": {
                "output_throughput": float(rounds.mean()),
                "rounds": [{"output_throughput": rate, "usable": True} for rate in rounds.tolist()],
                "acceptance_length": float(tokens.sum() / steps.sum()),
                "accuracy": float(right.mean()),
            },
            "requests": {
                "row_id": list(range(PROMPTS)),
                "output_tokens": tokens,
                "verify_steps": steps,
                "correct": right,
            },
            "reason": None,
        }
        return Cell(record)  # type: ignore[arg-type]


def share(outcomes: list[bool]) -> float:
    return sum(outcomes) / len(outcomes)


def catches(result: GateResult, metric: str) -> bool:
    return any(
        finding.metric.name == metric and finding.comparison is not None and finding.comparison.pair.new.key[0] == 1
        for finding in result.of(Verdict.REGRESSION)
    )


@pytest.mark.parametrize("rounds", [3, 5, 7])
def test_two_runs_of_one_distribution_rarely_trip_the_gate(rounds: int) -> None:
    simulation = Simulation(rounds, rounds)
    alarms = share([simulation.run().failed() for _ in range(TRIALS)])
    print(f"{rounds} rounds: {alarms:.1%} of runs trip the gate")
    assert alarms <= 0.05


@pytest.mark.parametrize(
    "rounds, losses, metric",
    [
        (7, {"throughput": 0.08}, "throughput"),
        (5, {"throughput": 0.12}, "throughput"),
        (3, {"throughput": 0.12}, "throughput"),
        (5, {"acceptance": 0.05}, "acceptance_length"),
        (5, {"accuracy": 0.05}, "accuracy"),
    ],
)
def test_a_true_loss_in_one_cell_is_caught(rounds: int, losses: dict[str, float], metric: str) -> None:
    simulation = Simulation(100 + rounds, rounds)
    caught = share([catches(simulation.run(**losses), metric) for _ in range(TRIALS)])
    print(f"{rounds} rounds, {losses}: {caught:.1%} caught")
    assert caught >= 0.9

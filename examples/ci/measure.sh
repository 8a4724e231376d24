#!/usr/bin/env bash
# Measures the matrix of the gate: measure.sh RECORD.json [any option of `pytest bench_tests`]
# Five rounds: fewer can't tell a machine's noise from a loss of a few per cent.
set -euo pipefail
record=${1:?usage: measure.sh RECORD.json [pytest options]}
shift
exec python -m pytest bench_tests --rounds 5 --benchmark-json "$record" --benchmark-quiet "$@"

#!/usr/bin/env bash
# Holds a record against the baseline: gate.sh BASELINE.json RECORD.json TABLE.md
# Writes the Markdown table for the pull request in any case; exit status 1 is a regression, 2 can't be compared.
set -euo pipefail
baseline=${1:?usage: gate.sh BASELINE.json RECORD.json TABLE.md} record=${2:?} table=${3:?}
exec specforge compare "$baseline" "$record" --format markdown --output "$table" \
  --fail-on throughput:5% acceptance_length:2% accuracy:2pp

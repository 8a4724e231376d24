"""What ``--output-json`` holds: one record, or a sweep's.

A sweep is ``{"format": 1, "sweep": {"over", "values", "output_throughput", "stops_growing_at"}, "cells": [...]}``:
``over`` is ``concurrency`` or ``request_rate``, ``values`` and ``output_throughput`` (tok/s) have one entry a level,
``stops_growing_at`` is the value after which throughput grows by no more than 5 % (null where it still grew), and
``cells`` has one record a level, each of the shape that a single level's file has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specforge.measurement.sweep import saturation
from specforge.results.record import FORMAT, CellRecord


def sweep_document(records: Sequence[CellRecord]) -> dict[str, Any]:
    """The document of a sweep's levels so far."""
    over = "concurrency" if records[0]["config"]["request_rate"] is None else "request_rate"
    values = [record["config"][over] for record in records]
    throughputs = [record["metrics"]["output_throughput"] for record in records]
    place = saturation(throughputs)
    return {
        "format": FORMAT,
        "sweep": {
            "over": over,
            "values": values,
            "output_throughput": throughputs,
            "stops_growing_at": None if place is None else values[place],
        },
        "cells": list(records),
    }

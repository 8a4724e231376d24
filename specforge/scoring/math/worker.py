"""The process that runs the algebra: ``python -m specforge.scoring.math.worker``.

math-verify and SymPy may take forever or all memory on an odd expression, and math-verify's own time limit works in a
main thread only. So they run here, one comparison a line: a JSON list ``[gold, answer]`` in, ``true`` or ``false`` out,
after a first line ``"ready"``. The parent ends the process when a line takes too long.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

MEMORY_BYTES = 4 << 30
# Ends the process should its parent die while a comparison hangs; the parent's own limit is shorter.
ORPHAN_S = 120


def main() -> None:
    """Answers lines until the standard input ends."""
    _limit_memory()
    verdicts = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not be taken for a verdict

    from specforge.scoring.math.structure import equivalent
    from specforge.scoring.math.symbolic import equal

    def say(value: object) -> None:
        verdicts.write(json.dumps(value) + "\n")
        verdicts.flush()

    say("ready")
    for line in sys.stdin:
        if hasattr(signal, "alarm"):
            signal.alarm(ORPHAN_S)
        gold, answer = json.loads(line)
        try:
            say(equivalent(gold, answer, equal))
        except (MemoryError, RecursionError):
            say(False)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    # macOS may refuse a limit; time is limited all the same.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main()

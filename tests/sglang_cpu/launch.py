"""Starts the real SGLang on CPU; what `--launch-command` names. Run it with the interpreter that install.sh set up::

    VENV/bin/python tests/sglang_cpu/launch.py --model-path DIR --port P [any flag of sglang.launch_server]

The process becomes the server, so that its id, its exit status and the signals sent to it are the server's. Flags given
win over the ones set here.
"""

from __future__ import annotations

import os
import sys

ENVIRONMENT = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
THREADS = "1"  # for small models one is several times faster than two
# The attention backends are two flags on purpose: the single one is rewritten to torch_native, which cannot speculate.
FLAGS = (
    *("--device", "cpu"),
    *("--host", "127.0.0.1"),
    *("--prefill-attention-backend", "intel_amx"),
    *("--decode-attention-backend", "intel_amx"),
    *("--mem-fraction-static", "0.5"),
    *("--max-total-tokens", "16384"),
)


def main() -> None:
    """Replaces this process by the server."""
    command = [sys.executable, "-m", "sglang.launch_server", *FLAGS, *sys.argv[1:]]
    os.execve(sys.executable, command, {"OMP_NUM_THREADS": THREADS, **os.environ, **ENVIRONMENT})


if __name__ == "__main__":
    main()

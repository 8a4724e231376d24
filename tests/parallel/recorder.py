"""A launch command that notes what a server was given, then becomes the scripted server.

python recorder.py NOTES.jsonl SERVER.py --script ... SGLANG'S FLAGS
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

if __name__ == "__main__":
    notes, server, *flags = sys.argv[1:]
    if "--help" not in flags:
        given = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"flags": flags, "environment": given, "worker": os.getppid()}) + "\n")
    os.execv(sys.executable, [sys.executable, server, *flags])

"""`python -m specforge.engine`: the embedded server, started like SGLang's."""

import os

# Read by OpenBLAS when NumPy is first imported. Products this small only wait for one another on several threads.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import asyncio  # noqa: E402
import logging  # noqa: E402
import sys  # noqa: E402

from specforge.engine.arguments import parse  # noqa: E402
from specforge.engine.build import build  # noqa: E402
from specforge.engine.server.serve import serve  # noqa: E402
from specforge.errors import UsageError  # noqa: E402

_SWITCH_SECONDS = 0.001
"""How long the computing thread may keep the interpreter while the server's waits."""


def main(argv: list[str]) -> int:
    """Serve; returns the exit code: 0 after a signal, 2 for wrong use."""
    try:
        arguments = parse(argv)
        logging.basicConfig(
            level=arguments.log_level.upper(), format="[%(asctime)s] %(message)s", datefmt="%Y-%m-%d %H:%M:%S"
        )
        for warning in arguments.warnings:
            logging.warning(warning)
        sys.setswitchinterval(_SWITCH_SECONDS)
        asyncio.run(serve(build(arguments), argv))
    except UsageError as error:
        print(f"specforge.engine: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

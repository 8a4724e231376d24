"""What the user says about the server to launch: the values of the command line's flags, nothing derived."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SGLANG_COMMAND = (sys.executable, "-m", "sglang.launch_server")
EMBEDDED_COMMAND = (sys.executable, "-m", "specforge.engine")


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """How a server is launched; each field is the pytest option of the same name.

    Attributes:
        model_path: ``--model-path``: a folder or a Hub id, handed to the server as it is.
        speculative_algorithm: None for the default of the configuration; case does not matter.
        speculative_draft_model_path: the draft of EAGLE, EAGLE3, STANDALONE and DFLASH.
        host: the address that the server binds; loopback unless the user says otherwise.
        port: None for a free one.
        launch_command: SGLang's flags are appended to it. It must stay in the foreground. ``{port}`` in it, and in
            ``stop_command``, becomes the port.
        stop_command: ends what the launch command's own process does not take along (a container); run at each stop.
        timeout_for_server_launch: seconds until the server must be ready.
        tp_size: tensor-parallel size, and like the next seven handed on under its SGLang name unless left out.
        server_args: further SGLang flags, split into words; they win over the harness's own.
        seed: ``--random-seed``.
        api_key: handed to the server, and stated in each request.
        log_dir: the folder of the servers' logs, created when missing.
        environment: variables that the server gets besides the harness's own environment, such as
            ``CUDA_VISIBLE_DEVICES`` of a worker's share.
    """

    model_path: str
    speculative_algorithm: str | None = None
    speculative_draft_model_path: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    launch_command: tuple[str, ...] = SGLANG_COMMAND
    stop_command: tuple[str, ...] = ()
    timeout_for_server_launch: float = 600.0
    tp_size: int | None = None
    mem_fraction_static: float | None = None
    attention_backend: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    trust_remote_code: bool = False
    ep_size: int | None = None
    disable_radix_cache: bool = False
    server_args: tuple[str, ...] = ()
    seed: int = 42
    api_key: str | None = None
    log_dir: Path = Path("results")
    environment: Mapping[str, str] = field(default_factory=dict)

"""Launches a server for each configuration, waits until it is ready, and makes sure that it is the one asked for."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
import warnings
from dataclasses import replace

from specforge.backends.base import About, Backend, Progress, Server, scrubbed
from specforge.backends.command import check_launch, server_command, settled, without_secrets
from specforge.backends.devices import visible_devices
from specforge.backends.flags import KnownFlags, probe_flags
from specforge.backends.gpu import memory_in_use, wait_until_freed
from specforge.backends.identity import mismatches
from specforge.backends.log import ServerLog
from specforge.backends.options import LaunchOptions
from specforge.backends.ports import PortClaim, claim_port, connect_host, wait_until_free
from specforge.backends.supervised import SupervisedProcess
from specforge.client import ControlClient, Endpoint
from specforge.errors import ServerError
from specforge.matrix import SpecConfig

_FIRST_PAUSE, _LAST_PAUSE = 0.05, 0.5
_PROGRESS_SECONDS = 1.0
_RELEASE_SECONDS = 30.0
# How long after its connections a dying process may still be there.
_DEATH_SECONDS = 2.0


class Launcher(Backend):
    """Launches SGLang, or whatever the launch command starts that speaks as it does.

    What the installed version's flags are called is asked once and kept here, so one launcher should serve all
    configurations.
    """

    def __init__(self, options: LaunchOptions) -> None:
        self.options = settled(options)
        self._known: KnownFlags | None = None

    def start(self, config: SpecConfig, on_progress: Progress | None = None) -> LaunchedServer:
        """See :meth:`Backend.start`. One that refuses a flag's spelling is started once more, with the other one."""
        check_launch(config, self.options)
        if self._known is None:
            self._known = probe_flags(self.options.launch_command, self.options.environment)
        launch = _Launch(config, self.options, self._known)
        try:
            return launch.until_ready(on_progress)
        except ServerError:
            other = self._known.after_refusal(launch.process.exit_status, "\n".join(launch.log.last_lines(5)))
            if other is None:
                raise
            self._known = other
        return _Launch(config, self.options, self._known).until_ready(on_progress)


class _Launch:
    """One attempt to bring a server up. Whatever interrupts it, the server is ended."""

    def __init__(self, config: SpecConfig, options: LaunchOptions, known: KnownFlags) -> None:
        self._config = config
        self._began = time.monotonic()
        self._claim = claim_port(options.host, options.port)
        try:
            self._options = replace(options, port=self._claim.port)
            command = server_command(config, self._options, known)
            self._shown = tuple(without_secrets(command))
            self._gpus = _GpuMemory(options)
            self.log = ServerLog(options.log_dir / f"server-{config}.log", shlex.join(self._shown))
            with contextlib.closing(self.log):
                self.process = SupervisedProcess(
                    command,
                    # Unbuffered, so that the log shows how far the server is.
                    {"PYTHONUNBUFFERED": "1", **os.environ, **options.environment},
                    self.log.file,
                    [word.replace("{port}", str(self._claim.port)) for word in options.stop_command],
                )
        except BaseException:
            self._claim.release()
            raise
        self._deadline = self._began + options.timeout_for_server_launch

    def until_ready(self, on_progress: Progress | None) -> LaunchedServer:
        host = connect_host(self._options.host)
        address = f"[{host}]" if ":" in host else host
        endpoint = Endpoint.parse(f"http://{address}:{self._claim.port}", self._options.api_key)
        control = ControlClient(endpoint)
        server = LaunchedServer(self._config, endpoint, self._about(), self.process, self.log, self._claim, self._gpus)
        try:
            self._wait(control, _Reporter(self.log, self._began, on_progress))
            server.about = self._verified(control)
            server.check_alive()
        except BaseException:
            with contextlib.suppress(ServerError):  # what went wrong first is what the user needs to know
                server.stop()
            raise
        finally:
            control.close()
        return server

    def _about(self) -> About:
        return About(server_info=None, model_info=None, command=self._shown, log=self.log.path)

    def _wait(self, control: ControlClient, reporter: _Reporter) -> None:
        """Polls until the server says it is ready, then has it make one token."""
        pause = _FIRST_PAUSE
        while not self.process.wait(min(pause, self._left())):
            reporter.report()
            if control.ready(timeout=min(5.0, self._left())) and control.health(timeout=self._left()):
                return
            if time.monotonic() >= self._deadline:
                raise ServerError(
                    f"--timeout-for-server-launch: the server of {self._config} was not ready after "
                    f"{self._options.timeout_for_server_launch:g} s; {self.log.ending()}"
                )
            pause = min(1.5 * pause, _LAST_PAUSE)
        raise _gone(self._config, self.process, self.log, "before it was ready")

    def _left(self) -> float:
        return max(0.05, self._deadline - time.monotonic())

    def _verified(self, control: ControlClient) -> About:
        try:
            info = control.server_info()
        except ServerError:
            if self.process.wait(_DEATH_SECONDS):
                raise _gone(self._config, self.process, self.log, "just after it was ready") from None
            raise
        if info is None:
            raise ServerError(
                f"{control.endpoint.base_url} serves no /server_info, so whether it is the server of {self._config} "
                f"can't be told; {self.log.ending()}"
            )
        wrong = mismatches(self._config, self._options, info)
        if wrong:
            raise ServerError(
                f"the server on {control.endpoint.base_url} is not what {self._config} asked for: {'; '.join(wrong)}"
            )
        return replace(
            self._about(),
            server_info=scrubbed(info, self._options.api_key),
            model_info=control.model_info(),
            started_in=time.monotonic() - self._began,
        )


class LaunchedServer(Server):
    """A server that this process started and will end."""

    def __init__(
        self,
        config: SpecConfig,
        endpoint: Endpoint,
        about: About,
        process: SupervisedProcess,
        log: ServerLog,
        claim: PortClaim,
        gpus: _GpuMemory,
    ) -> None:
        super().__init__(endpoint, about)
        self._config = config
        self._process = process
        self._log = log
        self._claim = claim
        self._gpus = gpus
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The process that the launch command became, which leads a session of its own."""
        return self._process.pid

    def check_alive(self) -> None:
        """See :meth:`Server.check_alive`. Looks at the process alone; whether it answers is ``/ready``'s to say."""
        if self._stopped:
            raise ServerError(f"the server of {self._config} was stopped")
        if self._process.ended:
            raise _gone(self._config, self._process, self._log, "while it was in use")

    def stop(self) -> None:
        """See :meth:`Server.stop`. Returns when the port and the GPUs' memory are free again.

        Raises:
            ServerError: something is left that could not be ended.
        """
        if self._stopped:
            return
        self._stopped = True
        try:
            self._process.stop()
            if not wait_until_free(self._claim.host, self._claim.port, _RELEASE_SECONDS):
                raise ServerError(
                    f"port {self._claim.port} is still taken {_RELEASE_SECONDS:.0f} s after the server of "
                    f"{self._config} was ended; a server in a container needs --stop-command"
                )
            if not self._gpus.wait_until_freed(_RELEASE_SECONDS):
                warnings.warn(
                    f"{_RELEASE_SECONDS:.0f} s after the server of {self._config} was ended, the GPUs have more memory "
                    "in use than before it was launched",
                    stacklevel=2,
                )
        finally:
            self._claim.release()


class _GpuMemory:
    """The memory in use before a launch, on the devices that the server may use."""

    def __init__(self, options: LaunchOptions) -> None:
        named = visible_devices({**os.environ, **options.environment}, gpus=None, installed=lambda: ())
        self._devices = named.ids or None
        self._before = memory_in_use(self._devices)

    def wait_until_freed(self, seconds: float) -> bool:
        return wait_until_freed(self._before, self._devices, seconds)


class _Reporter:
    """Tells how a start goes on: when the log has a new last line, and each second otherwise."""

    def __init__(self, log: ServerLog, began: float, on_progress: Progress | None) -> None:
        self._log = log
        self._began = began
        self._on_progress = on_progress
        self._said: tuple[float, str] = (0.0, "")

    def report(self) -> None:
        if self._on_progress is None:
            return
        elapsed = time.monotonic() - self._began
        line = (self._log.last_lines(1) or [""])[0]
        if line != self._said[1] or elapsed - self._said[0] >= _PROGRESS_SECONDS:
            self._said = (elapsed, line)
            self._on_progress(elapsed, line)


def _gone(config: SpecConfig, process: SupervisedProcess, log: ServerLog, when: str) -> ServerError:
    return ServerError(f"the server of {config} {process.describe_end()} {when}; {log.ending()}")

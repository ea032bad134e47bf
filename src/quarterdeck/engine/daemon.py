"""The engine's process: one per run directory, from its lock to its orderly end."""

import asyncio
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import ValidationError

from quarterdeck.agents.port import AgentCatalog
from quarterdeck.engine.agent_session import CatalogFactory
from quarterdeck.engine.engine import Engine
from quarterdeck.engine.errors import JournalError
from quarterdeck.engine.journal import FILE_NAME
from quarterdeck.engine.rpc import RpcServer
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.local.files import reason_of, write_file
from quarterdeck.local.open_files import lower_limit
from quarterdeck.wire.agents import OwnAgent
from quarterdeck.wire.dial_home import (
    BOOT_VARIABLE,
    HOME_CA_NAME,
    HOME_CA_VARIABLE,
)
from quarterdeck.wire.engine import CONFIG_NAME, SOCKET_NAME, EngineConfig
from quarterdeck.wire.inside import HOME_VARIABLE, WORKSPACE_VARIABLE

logger = logging.getLogger(__name__)

WATCH_SECONDS = 20.0
"""Between two checks."""
ALONE_SECONDS = 60.0
"""A restarted service takes over its engines within this time."""
OPEN_FILES = 20_000
"""In a container. Not given when it is made, because podman then raises other limits, which it may not be allowed to."""


class FileWatcher:
    """Ends an engine that is unreachable or unused. `run` is cancelled when the engine ends.

    Engines outlive the service. One whose directories were removed can no longer be found; one that
    was unused for its auto-stop time would have been put to sleep by a running service.
    """

    def __init__(self, engine: Engine, server: RpcServer, files: Iterable[Path]) -> None:
        """Note the inodes of `files`, which are needed to find the engine and its state.

        Raises:
            OSError: one of them is missing.
        """
        self._engine = engine
        self._server = server
        self._files = {path: path.stat().st_ino for path in files}

    async def run(self) -> None:
        """Check from time to time, until the engine is to end."""
        while not self._engine.ending.is_set():
            await asyncio.sleep(WATCH_SECONDS)
            await self.check()

    async def check(self) -> None:
        """Ask the engine to end when it is time."""
        if removed := next((path for path in self._files if not self._is_there(path)), None):
            logger.error("ending: %s was removed", removed)
            self._engine.ending.set()
        elif self._server.alone_seconds >= ALONE_SECONDS and self._engine.unused:
            try:
                await self._engine.fall_asleep()
            except JournalError as fault:
                logger.warning("the engine stays awake: %s", fault)

    def _is_there(self, path: Path) -> bool:
        # Inside a sandbox a removed directory is still mounted, but empty.
        try:
            return path.stat().st_ino == self._files[path]
        except OSError:
            return False


LOCK_NAME = "engine.lock"
EXIT_RUNNING = 3
"""Exit status when another engine serves this run directory."""
EXIT_UNUSABLE = 4
"""Exit status when the configuration or a directory cannot be used; the log says why."""


class UnusableError(Exception):
    """The engine cannot be started. The text says why."""


class AlreadyRunningError(Exception):
    """Another engine holds the lock of this run directory."""


def default_catalog(own: Mapping[str, OwnAgent]) -> AgentCatalog:
    """Return the agents of this machine; imported here because their drivers are slow to load."""
    from quarterdeck.agents.catalog import default_catalog as make

    return make(own=own)


def run(
    run_dir: Path,
    catalog: CatalogFactory | None = None,
    now: Callable[[], float] = monotonic,
    dials_home: bool = False,
) -> int:
    """Run an engine to its end; return the process's exit status.

    Args:
        catalog: the agents; by default those of this machine.
        now: as of `Engine.open`.
        dials_home: whether it runs in a container and connects to its service.
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        with _exclusive(run_dir):
            if dials_home:
                asyncio.run(_serve_in_container(run_dir, catalog, now))
            else:
                asyncio.run(serve(run_dir, catalog, now))
    except AlreadyRunningError:
        logger.error("another engine serves %s", run_dir)
        return EXIT_RUNNING
    except (OSError, ValidationError, UnusableError) as error:
        logger.error("the engine cannot run: %s", _without_input(error))
        return EXIT_UNUSABLE
    return 0


async def serve(
    run_dir: Path, catalog: CatalogFactory | None = None, now: Callable[[], float] = monotonic
) -> None:
    """Serve the run directory's socket until `shutdown` or a signal.

    Raises:
        OSError: a directory cannot be used.
        ValidationError: the configuration is not valid.
    """
    config = EngineConfig.model_validate_json((run_dir / CONFIG_NAME).read_bytes())
    _forget_credentials(run_dir / CONFIG_NAME, config)
    await _serve(run_dir, config, catalog, now)


async def _serve_in_container(
    run_dir: Path, catalog: CatalogFactory | None, now: Callable[[], float]
) -> None:
    """Fetch the configuration, make missing clones, and serve the connections home.

    Raises:
        UnusableError: the environment or the service gives no configuration, or a clone fails.
        OSError: a directory cannot be used.
    """
    from quarterdeck.engine.boot_clones import CloneFailedError, NoFilesError, make_clones
    from quarterdeck.engine.dial_home import HomeDialer, NoBootError, ServiceAddress, fetch_boot

    lower_limit(OPEN_FILES)
    try:
        place = os.environ[HOME_VARIABLE], os.environ[WORKSPACE_VARIABLE]
        address = ServiceAddress(*place, _pinned(run_dir / HOME_CA_NAME))
        boot = await fetch_boot(address, os.environ.pop(BOOT_VARIABLE))
        # The image has these, but only Docker's volumes begin as a copy of it.
        for place in (Path.home(), Path(boot.config.workspace_dir), Path(boot.config.state_dir)):
            await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
        restored = await make_clones(boot, address)
    except KeyError as error:
        raise UnusableError(f"{error.args[0]} is not set") from error
    except (NoBootError, CloneFailedError, NoFilesError) as error:
        raise UnusableError(str(error)) from error
    dialer = HomeDialer(address, boot.token, run_dir / SOCKET_NAME)
    await _serve(run_dir, boot.config, catalog, now, dialer.run, restored)


async def _serve(
    run_dir: Path,
    config: EngineConfig,
    catalog: CatalogFactory | None,
    now: Callable[[], float],
    beside: Callable[[], Coroutine[Any, Any, None]] | None = None,
    restored: str | None = None,
) -> None:
    """Serve until `shutdown` or a signal; `beside` runs meanwhile, once the socket is there."""
    agents = catalog or (lambda: default_catalog(config.agents))
    engine = await Engine.open(config, agents, now, restored)
    _on_signals(engine.ending)
    server = RpcServer(run_dir, config.secret, engine, now)
    watching, dialing = TaskOwner(), TaskOwner()
    try:
        await server.start()
        engine.start()
        logger.info("serving workspace %s", config.workspace_id)
        files = (run_dir / SOCKET_NAME, Path(config.state_dir) / FILE_NAME)
        watching.start(FileWatcher(engine, server, files).run(), "watch")
        if beside is not None:
            dialing.start(beside(), "dialing home")
        await engine.ending.wait()
        logger.info("ending")
    finally:
        await watching.close()
        await engine.close()
        await server.close()
        await dialing.close()  # last: the links' ends went through it


def _pinned(path: Path) -> Path | None:
    """Write the certificate that the service's is checked against, if one is given."""
    text = os.environ.pop(HOME_CA_VARIABLE, None)
    if text is None:
        return None
    write_file(path, text, durable=False)
    return path


def _forget_credentials(path: Path, config: EngineConfig) -> None:
    """Remove the agents' keys from the file: shells run as the user who may read it."""
    if not config.setup.credentials:
        return
    setup = config.setup.model_copy(update={"credentials": {}})
    without = config.model_copy(update={"setup": setup}).model_dump_json(by_alias=True)
    write_file(path, without, durable=False)


@contextmanager
def _exclusive(run_dir: Path) -> Generator[None]:
    descriptor = os.open(run_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunningError from error
        yield
    finally:
        os.close(descriptor)


def _on_signals(ending: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # its starter may end


def _without_input(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fields = [".".join(map(str, fault["loc"])) for fault in error.errors(include_input=False)]
        return f"{CONFIG_NAME} is not valid at {', '.join(fields)}"
    return reason_of(error) if isinstance(error, OSError) else str(error)

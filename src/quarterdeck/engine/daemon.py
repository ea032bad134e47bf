"""The engine's process: one per run directory, from its lock to its orderly end."""

import asyncio
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from quarterdeck.agents.port import AgentCatalog
from quarterdeck.engine.agent_desk import CatalogFactory
from quarterdeck.engine.engine import Engine
from quarterdeck.engine.rpc import RpcServer
from quarterdeck.wire.engine import CONFIG_NAME, EngineConfig
from quarterdeck.wire.own_agents import OwnAgent

logger = logging.getLogger(__name__)

LOCK_NAME = "engine.lock"
EXIT_RUNNING = 3
"""Exit status when another engine serves this run directory."""
EXIT_UNUSABLE = 4
"""Exit status when the configuration or a directory cannot be used; the log says which."""


class AlreadyRunning(Exception):
    """Another engine holds the lock of this run directory."""


def default_catalog(own: Mapping[str, OwnAgent]) -> AgentCatalog:
    """The agents of this machine; imported here because their drivers are slow to load."""
    from quarterdeck.agents.catalog import default_catalog as make

    return make(own=own)


def run(run_dir: Path, catalog: CatalogFactory | None = None) -> int:
    """Runs an engine to its end; returns the process's exit status."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        with _only_one(run_dir):
            asyncio.run(serve(run_dir, catalog))
    except AlreadyRunning:
        logger.error("another engine serves %s", run_dir)
        return EXIT_RUNNING
    except (OSError, ValidationError) as error:
        logger.error("the engine cannot run: %s", _without_input(error))
        return EXIT_UNUSABLE
    return 0


async def serve(run_dir: Path, catalog: CatalogFactory | None = None) -> None:
    """Serves the run directory's socket until `shutdown` or a signal.

    Raises:
        OSError: a directory cannot be used.
        ValidationError: the configuration is not valid.
    """
    config = EngineConfig.model_validate_json((run_dir / CONFIG_NAME).read_bytes())
    _forget_credentials(run_dir / CONFIG_NAME, config)
    engine = await Engine.open(config, catalog or (lambda: default_catalog(config.agents)))
    _on_signals(engine.ending)
    server = RpcServer(run_dir, config.secret, engine)
    try:
        await server.start()
        engine.start()
        logger.info("serving workspace %s", config.workspace_id)
        await engine.ending.wait()
        logger.info("ending")
    finally:
        await engine.close()
        await server.close()


def _forget_credentials(path: Path, config: EngineConfig) -> None:
    """Takes the agents' keys out of the file: shells run as the user who may read it."""
    if not config.setup.credentials:
        return
    setup = config.setup.model_copy(update={"credentials": {}})
    without = config.model_copy(update={"setup": setup}).model_dump_json(by_alias=True)
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(without)
    new.replace(path)


@contextmanager
def _only_one(run_dir: Path) -> Generator[None]:
    descriptor = os.open(run_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning from error
        yield
    finally:
        os.close(descriptor)


def _on_signals(ending: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # whoever started the engine may go


def _without_input(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fields = [".".join(map(str, one["loc"])) for one in error.errors(include_input=False)]
        return f"{CONFIG_NAME} is not valid at {', '.join(fields)}"
    return str(error)

"""Opens everything a service is made of, and closes it again."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.engines import sqlite_url
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.first_start import ensure_installation
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.home import take_home
from quarterdeck.service.identity.settings import NO_SETTINGS, IdentitySettings
from quarterdeck.service.ownership import claim
from quarterdeck.service.vault import Vault
from quarterdeck.wire.agents import Agent


@asynccontextmanager
async def open_service(
    home: Home,
    sandboxes: SandboxDriver,
    agents: Callable[[], list[Agent]],
    database_url: str | None = None,
    identity: IdentitySettings = NO_SETTINGS,
) -> AsyncGenerator[ServiceContext]:
    """Takes the home, opens the database, makes what a first start makes.

    `agents` is called in a thread. The database is the home's own SQLite file when no URL is given.

    Raises:
        StartError: the home is in use or cannot be used, or the database is another home's.
        StorageError: the database cannot be opened, or a newer version wrote it.
    """
    lock = take_home(home)
    try:
        database = await Database.open(database_url or sqlite_url(home.database))
        try:
            vault = await Vault.open(home.master_key)
            if database_url is not None:
                await claim(database, vault)
            await ensure_installation(database, home)
            context = ServiceContext(
                database, EventLog(database), sandboxes, agents, home, vault, identity=identity
            )
            context.fleet = Fleet(context)
            yield context
        finally:
            await database.close()
    finally:
        lock.release()

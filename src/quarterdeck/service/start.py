"""Opens everything a service is made of, and closes it again."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
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
from quarterdeck.service.homes import adopt, home_id
from quarterdeck.service.hosts.settings import NO_HOSTS, HostsSettings
from quarterdeck.service.identity.settings import NO_SETTINGS, IdentitySettings
from quarterdeck.service.ownership import claim
from quarterdeck.service.vault import Vault
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.own_agents import OwnAgent


@asynccontextmanager
async def open_service(
    home: Home,
    sandboxes: SandboxDriver,
    agents: Callable[[], list[Agent]],
    database_url: str | None = None,
    identity: IdentitySettings = NO_SETTINGS,
    hosts: HostsSettings = NO_HOSTS,
    own_agents: Mapping[str, OwnAgent] | None = None,
    own_keys: Callable[[], Mapping[str, str]] = dict[str, str],
) -> AsyncGenerator[ServiceContext]:
    """Takes the home, opens the database, makes what a first start makes.

    `agents` is called in a thread; `own_agents` are those that a person added, `own_keys` looks for
    keys that the owner's replicas are given where no other is stored. The database is the home's own SQLite file when no URL is given.

    Raises:
        StartError: the home is in use or cannot be used, or the database belongs to
            another master key.
        StorageError: the database cannot be opened, or a newer version wrote it.
    """
    lock = take_home(home)
    try:
        own = await asyncio.to_thread(home_id, home)
        database = await Database.open(database_url or sqlite_url(home.database), own)
        try:
            vault = await Vault.open(home.master_key)
            if database_url is not None:
                await claim(database, vault, home.master_key)
            await database.write(lambda c: adopt(c, own))
            await ensure_installation(database, home)
            context = ServiceContext(
                database,
                EventLog(database),
                sandboxes,
                agents,
                home,
                vault,
                own,
                identity=identity,
                hosts=hosts,
                own_agents=own_agents or {},
                own_keys=own_keys,
            )
            context.fleet = Fleet(context)
            yield context
        finally:
            await database.close()
    finally:
        lock.release()

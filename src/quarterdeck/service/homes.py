"""Whose workspace is whose, when several services share a database.

A service is a home: its sandboxes, archives and mirrors lie there, and the home's id is the owner in
the rows. Ownership never moves. Who does what:

| work | done by |
|---|---|
| finding engines again, putting to rest, deleting when unused, leftovers of removals, hook tests | the owner of the workspace |
| requests that name a workspace | its owner; another service passes them on (`service.forwarding`) |
| events: their streams, notifications, webhooks | the service that stored them, which is the owner |
| creates | the service that was asked, which becomes the owner |
| warm pools | each service for the creates it takes: a prepared workspace cannot change its host. `target_size`, and what is told of a pool, are of one service; the pause after a failure is of all |
| the bound of active workspaces | each service counts its own: it guards a host |
| automations: fires, and runs that make a replica | any one service, decided in the transaction that marks the run; it becomes the owner |
| a run that joins another in its replica | the owner of that replica, when it is there |
| webhook calls that wait, also of deleted workspaces | the owner of the workspace; those of a service that was not seen for long go to the first that notices (`service.presence`) |
| telling a source host of a check | any one service, decided in the transaction that begins the call (`checks.delivery`) |
| keys, users, environments, credentials | any service, in the rows alone |
| mirrors of repositories | each service makes its own when a workspace needs it |
"""

from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import Connection, update

from quarterdeck.local.home import Home
from quarterdeck.service.db.tables import settings, webhook_deliveries, workspaces
from quarterdeck.service.errors import HomeUnusableError
from quarterdeck.service.key_file import read_key_file, write_key_file
from quarterdeck.service.records.previews import PORT_SETTING, port_setting
from quarterdeck.service.records.removals import NOTE


def home_id(home: Home) -> str:
    """The home's own id, made at its first start; call with the home's lock held.

    Raises:
        HomeUnusableError: the file cannot be read or written, or holds no id.
    """
    text = read_key_file(home.id)
    if text is None:
        text = str(uuid4())
        write_key_file(home.id, text)
    return _checked(home.id, text)


def adopt(connection: Connection, own: str) -> None:
    """Gives a home what has no owner: all that was stored before homes had ids."""
    for table in (workspaces, webhook_deliveries):
        connection.execute(update(table).where(table.c.home_id.is_(None)).values(home_id=own))
    notes = settings.c.name.startswith(NOTE) & (settings.c.value == "")
    connection.execute(update(settings).where(notes).values(value=own))
    port = settings.c.name == PORT_SETTING
    connection.execute(update(settings).where(port).values(name=port_setting(own)))


def _checked(path: Path, text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as e:
        raise HomeUnusableError(
            f"The file {path} holds no id. Bring back the right one: the replicas of this home are "
            "known by it."
        ) from e

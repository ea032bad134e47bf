"""Whose workspace a request names. Ownership never moves, so it is asked for once."""

from uuid import UUID

from starlette.types import Scope

from quarterdeck.service.auth import Caller, CallerKind
from quarterdeck.service.db.database import Database
from quarterdeck.service.records.services import Owner, owner_of

FAMILIES = ("replica", "workspaces")
ENTRIES = 10_000


class Owners:
    """Remembers who has which workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Owner] = {}

    async def of(self, workspace_id: str) -> Owner | None:
        """The owner of a workspace; None when there is none of this id.

        Raises:
            StorageError: the database cannot be read.
        """
        known = self._known.get(workspace_id)
        if known is not None:
            return known
        found = await self._database.read(lambda c: owner_of(c, workspace_id))
        if found is not None:
            if len(self._known) >= ENTRIES:
                self._known.clear()
            self._known[workspace_id] = found
        return found


def workspace_named(scope: Scope, caller: Caller) -> tuple[str, str] | None:
    """The workspace that a request is about, and what follows it in the path.

    It is that of the path, or of the engine whose secret was shown.
    """
    parts = scope["path"].split("/", 4)
    if len(parts) > 3 and parts[1] == "v1" and parts[2] in FAMILIES:
        try:
            return str(UUID(parts[3])), "/".join(parts[4:])
        except ValueError:
            return None
    if caller.kind is CallerKind.ENGINE and caller.workspace_id is not None:
        return caller.workspace_id, ""
    return None

"""Which ports of a workspace are previews; every change is told as an event."""

from datetime import datetime

from sqlalchemy.exc import IntegrityError

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.previews.addresses import new_token, public_url
from quarterdeck.service.previews.doorway import Doorway
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.previews import (
    PreviewRow,
    add_preview,
    previews_of,
    remove_preview,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType, Preview, PreviewChanged


class Previews:
    """The previews of all workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._doorway = Doorway(context)

    async def start(self) -> None:
        """Lets those that there are be looked at again."""
        await self._doorway.start()

    async def close(self) -> None:
        """Ends every connection."""
        await self._doorway.close()

    async def list(self, workspace_id: str) -> list[Preview]:
        """Those of a workspace, by port."""
        rows = await self._context.database.read(lambda c: previews_of(c, workspace_id))
        if not rows:
            return []
        base = await self._doorway.listen()
        return [_shown(base, row) for row in rows]

    async def open(self, workspace_id: str, port: int) -> Preview:
        """Makes a port of a workspace a preview.

        Raises:
            ApiError: CONFLICT when it is one; the details hold its address.
        """
        base = await self._doorway.listen()
        now = moment_text(self._context.clock())
        row = PreviewRow(workspace_id, port, new_token(), now)
        try:
            await self._context.event_log.write(lambda writer: _open(writer, row, base))
        except IntegrityError as e:
            raise await self._taken(row) from e
        return _shown(base, row)

    async def remove(self, workspace_id: str, port: int) -> None:
        """Makes a port an ordinary one again.

        Raises:
            ApiError: NOT_FOUND.
        """
        base = await self._doorway.listen()
        await self._context.event_log.write(
            lambda writer: _remove(writer, workspace_id, port, base)
        )

    async def _taken(self, row: PreviewRow) -> ApiError:
        known = [one for one in await self.list(row.workspace_id) if one.port == row.port]
        if not known:
            return ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
        return ApiError(
            ErrorCode.CONFLICT, f"Port {row.port} is a preview already.", known[0].public_url
        )


def _open(writer: LogWriter, row: PreviewRow, base: int) -> None:
    add_preview(writer.connection, row)
    _tell(writer, row.workspace_id, base)


def _remove(writer: LogWriter, workspace_id: str, port: int, base: int) -> None:
    if not remove_preview(writer.connection, workspace_id, port):
        raise ApiError(ErrorCode.NOT_FOUND, "The replica has no preview of this port.")
    _tell(writer, workspace_id, base)


def _tell(writer: LogWriter, workspace_id: str, base: int) -> None:
    shown = [_shown(base, row) for row in previews_of(writer.connection, workspace_id)]
    payload = PreviewChanged(previews=shown).model_dump(mode="json", by_alias=True)
    writer.append(workspace_id, [NewEvent(EventType.PREVIEW_CHANGED, payload)])


def _shown(base: int, row: PreviewRow) -> Preview:
    return Preview(
        port=row.port,
        public_url=public_url(base, row.token),
        created_at=datetime.fromisoformat(row.created_at),
    )

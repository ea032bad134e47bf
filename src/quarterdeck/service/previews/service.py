"""Which ports of a workspace are previews; every change is an event."""

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.exc import IntegrityError

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent, StoredEvent
from quarterdeck.service.formats import moment_text
from quarterdeck.service.listeners import listens_here
from quarterdeck.service.previews.addresses import new_token, public_url
from quarterdeck.service.previews.reverse_proxy import PreviewServer
from quarterdeck.service.previews.rows import PreviewRow, add_preview, previews_of, remove_preview
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType, PreviewChanged
from quarterdeck.wire.previews import Preview
from quarterdeck.wire.replicas import WorkspaceStatus

MOST_PREVIEWS = 32
"""Previews that a workspace may have at a time."""


class PreviewService:
    """The previews of all workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._server = PreviewServer(context)

    async def start(self) -> None:
        """Serve the existing previews again."""
        await self._server.start()

    async def close(self) -> None:
        """End every connection."""
        await self._server.close()

    async def list(self, workspace_id: str) -> list[Preview]:
        """Return those of a workspace, by port."""
        rows = await self._context.database.read(lambda c: previews_of(c, workspace_id))
        if not rows:
            return []
        base = await self._server.listen()
        return [_shown(base, row) for row in rows]

    async def open(self, workspace_id: str, port: int) -> tuple[Preview, bool]:
        """Make a port of a workspace a preview; return an existing one with False.

        Raises:
            ApiError: INVALID_REQUEST for a port of the service itself; CONFLICT at the limit of previews;
                NOT_FOUND when the workspace was deleted in the meantime.
        """
        base = await self._server.listen()
        driver = await self._context.driver(workspace_id)
        if self._context.drivers.is_local(driver) and listens_here(port):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Port {port} is the service's own. Let the program listen on another port.",
            )
        now = moment_text(self._context.clock())
        row = PreviewRow(workspace_id, port, new_token(), now)
        try:
            await self._context.event_log.write(lambda writer: _open(writer, row, base))
        except IntegrityError as e:
            known = [preview for preview in await self.list(workspace_id) if preview.port == port]
            if not known:
                raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.") from e
            return known[0], False
        return _shown(base, row), True

    async def remove(self, workspace_id: str, port: int) -> None:
        """Make a port an ordinary one again.

        Raises:
            ApiError: NOT_FOUND.
        """
        base = await self._server.listen()
        await self._context.event_log.write(
            lambda writer: _remove(writer, workspace_id, port, base)
        )
        self._server.end(workspace_id, port)

    def hear(self, workspace_id: str, events: Sequence[StoredEvent]) -> None:
        """End connections to a workspace that is no longer active. Called by the event log."""
        if any(_has_stopped(event) for event in events):
            self._server.end(workspace_id)

    def forget(self, workspace_id: str) -> None:
        """End the connections to a workspace that was deleted, or that another service has taken."""
        self._server.end(workspace_id)


def _has_stopped(event: StoredEvent) -> bool:
    if event.type != EventType.ENGINE_STATUS_CHANGED:
        return False
    status = json.loads(event.payload_json).get("workspaceStatus")
    return status is not None and status != WorkspaceStatus.ACTIVE


def _open(writer: LogWriter, row: PreviewRow, base: int) -> None:
    known = {one.port for one in previews_of(writer.connection, row.workspace_id)}
    if len(known) >= MOST_PREVIEWS and row.port not in known:
        raise ApiError(
            ErrorCode.CONFLICT,
            f"The replica has {MOST_PREVIEWS} previews, which is the limit. Close one first.",
        )
    add_preview(writer.connection, row)
    _append_change(writer, row.workspace_id, base)


def _remove(writer: LogWriter, workspace_id: str, port: int, base: int) -> None:
    if not remove_preview(writer.connection, workspace_id, port):
        raise ApiError(ErrorCode.NOT_FOUND, "The replica has no preview of this port.")
    _append_change(writer, workspace_id, base)


def _append_change(writer: LogWriter, workspace_id: str, base: int) -> None:
    shown = [_shown(base, row) for row in previews_of(writer.connection, workspace_id)]
    payload = PreviewChanged(previews=shown).model_dump(mode="json", by_alias=True)
    writer.append(workspace_id, [NewEvent(EventType.PREVIEW_CHANGED, payload)])


def _shown(base: int, row: PreviewRow) -> Preview:
    return Preview(
        port=row.port,
        public_url=public_url(base, row.token),
        created_at=datetime.fromisoformat(row.created_at),
    )

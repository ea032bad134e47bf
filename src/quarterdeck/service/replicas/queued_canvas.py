"""Canvas files that wait for their replica."""

import asyncio
import base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update

from quarterdeck.engine.link import EngineLink, EngineRefusedError
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.db.tables import canvas_uploads
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import moment_text
from quarterdeck.wire.engine import WriteCanvas
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import display_path


@dataclass(frozen=True)
class Upload:
    """One upload without its content. `filename` is the final one once it was written."""

    id: str
    workspace_id: str
    filename: str
    size_bytes: int
    message_id: str | None
    created_at: str
    written_at: str | None

    @property
    def file_path(self) -> str:
        """The path in the workspace, for the agent."""
        return display_path(self.filename)


_columns = tuple(canvas_uploads.c[field.name] for field in fields(Upload))


def add_upload(connection: Connection, content: bytes, **values: Any) -> None:
    """Store an upload that waits."""
    row = {"content": content, "size_bytes": len(content), **values}
    connection.execute(insert(canvas_uploads).values(**row))


def find_uploads(connection: Connection, workspace_id: str, ids: Collection[str]) -> list[Upload]:
    """Return those of a workspace that have one of the ids, oldest first."""
    return _uploads(
        connection, canvas_uploads.c.workspace_id == workspace_id, canvas_uploads.c.id.in_(ids)
    )


def uploads_of_message(connection: Connection, message_id: str) -> list[Upload]:
    """Return those that a message names, oldest first."""
    return _uploads(connection, canvas_uploads.c.message_id == message_id)


def waiting_uploads(connection: Connection, workspace_id: str, since: str) -> list[Upload]:
    """Return those that are not written: named by a message, or not made before `since`."""
    return _uploads(
        connection,
        canvas_uploads.c.workspace_id == workspace_id,
        canvas_uploads.c.written_at.is_(None),
        or_(canvas_uploads.c.message_id.is_not(None), canvas_uploads.c.created_at >= since),
    )


def content_of(connection: Connection, upload_id: str) -> bytes | None:
    """Return the bytes of an upload that is not written yet; None when it no longer exists."""
    statement = select(canvas_uploads.c.content).where(canvas_uploads.c.id == upload_id)
    return connection.execute(statement).scalar()


def claim(connection: Connection, ids: Collection[str], message_id: str) -> None:
    """Note the message that names them; those of an earlier message stay with that one."""
    statement = (
        update(canvas_uploads)
        .where(canvas_uploads.c.id.in_(ids), canvas_uploads.c.message_id.is_(None))
        .values(message_id=message_id)
    )
    connection.execute(statement)


def pass_on(connection: Connection, earlier: Collection[str], message_id: str) -> None:
    """Note that a message has taken the place of earlier ones."""
    statement = (
        update(canvas_uploads)
        .where(canvas_uploads.c.message_id.in_(earlier))
        .values(message_id=message_id)
    )
    connection.execute(statement)


def mark_written(connection: Connection, upload_id: str, filename: str, now: str) -> None:
    """Note the name that the upload has in the workspace, and drop its stored content."""
    statement = (
        update(canvas_uploads)
        .where(canvas_uploads.c.id == upload_id)
        .values(written_at=now, filename=filename, content=b"")
    )
    connection.execute(statement)


def drop_uploads(connection: Connection, before: str) -> None:
    """Remove old ones, except those that a message still waits for."""
    over = or_(canvas_uploads.c.message_id.is_(None), canvas_uploads.c.written_at.is_not(None))
    connection.execute(
        delete(canvas_uploads).where(and_(canvas_uploads.c.created_at < before, over))
    )


def _uploads(connection: Connection, *conditions: ColumnElement[bool]) -> list[Upload]:
    statement = (
        select(*_columns)
        .where(*conditions)
        .order_by(canvas_uploads.c.created_at, canvas_uploads.c.id)
    )
    return [Upload(*row) for row in connection.execute(statement)]


KEPT = timedelta(hours=24)


def kept_since(now: datetime) -> str:
    """Return the moment before which uploads are no longer kept."""
    return moment_text(now - KEPT)


def uploads_for_message(
    connection: Connection, workspace_id: str, ids: Sequence[str], now: datetime
) -> list[Upload]:
    """Return the uploads that a message names, written or waiting.

    Raises:
        ApiError: INVALID_REQUEST; the details name the ids that the workspace does not know.
    """
    since = kept_since(now)
    uploads = find_uploads(connection, workspace_id, set(ids))
    known = {upload.id for upload in uploads if upload.message_id or upload.created_at >= since}
    if unknown := [upload_id for upload_id in ids if upload_id not in known]:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "There is no such upload.",
            f"canvasUploadIds: {', '.join(unknown)}",
        )
    return uploads


def claim_uploads(connection: Connection, uploads: Sequence[Upload], message_id: str) -> None:
    """Note that a stored message waits for them, so that they are kept."""
    claim(connection, [upload.id for upload in uploads], message_id)


async def write_queued(
    database: Database,
    link: EngineLink,
    workspace_id: str,
    clock: Callable[[], datetime],
    limit: float | None = None,
) -> dict[str, EngineRefusedError]:
    """Write every waiting upload, oldest first; return those that the workspace cannot store, by id.

    `limit` are the seconds for an answer of the engine.

    Raises:
        EngineGoneError: the link was lost.
        TimeoutError: the engine does not answer.
    """
    since = kept_since(clock())
    waiting = await retry_until_stored(
        lambda: database.read(lambda c: waiting_uploads(c, workspace_id, since))
    )
    refused: dict[str, EngineRefusedError] = {}
    for upload in waiting:
        try:
            await _write(database, link, upload, clock, limit)
        except EngineRefusedError as e:
            refused[upload.id] = e
    return refused


async def _write(
    database: Database,
    link: EngineLink,
    upload: Upload,
    clock: Callable[[], datetime],
    limit: float | None,
) -> None:
    content = await retry_until_stored(lambda: database.read(lambda c: content_of(c, upload.id)))
    if content is None:
        return  # its workspace was deleted in the meantime
    async with asyncio.timeout(limit):
        written = await link.canvas_put(
            WriteCanvas(
                upload_id=UUID(upload.id),
                filename=upload.filename,
                base64=base64.b64encode(content).decode(),
            )
        )
    now = moment_text(clock())
    await retry_until_stored(
        lambda: database.write(lambda c: mark_written(c, upload.id, written.filename, now))
    )

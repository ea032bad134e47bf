"""Uploads that wait for their workspace: named by messages, written before those are delivered.

accepting a message   uploads_for_message -> add_message -> claim_uploads, in one transaction
delivering it         write_queued, then uploads_of_message for the names they were given

An upload is kept for a day; one that an accepted message names until it is written. The engine
takes an upload that it has written already as known, so whatever is killed, it is written once.
"""

import base64
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.canvas_uploads import (
    Upload,
    claim,
    content_of,
    find_uploads,
    mark_written,
    uploads_of_message,
    waiting_uploads,
)
from quarterdeck.wire.engine import WriteCanvas
from quarterdeck.wire.errors import ErrorCode

__all__ = ["claim_uploads", "uploads_for_message", "uploads_of_message", "write_queued"]

KEPT = timedelta(hours=24)


def kept_since(now: datetime) -> str:
    """Uploads made before this moment are forgotten."""
    return moment_text(now - KEPT)


def uploads_for_message(
    connection: Connection, workspace_id: str, ids: Sequence[str], now: datetime
) -> list[Upload]:
    """The uploads that a message names, written or waiting.

    Raises:
        ApiError: INVALID_REQUEST; the details name the ids that the workspace does not know.
    """
    since = kept_since(now)
    found = find_uploads(connection, workspace_id, set(ids))
    known = {upload.id for upload in found if upload.message_id or upload.created_at >= since}
    if unknown := [one for one in ids if one not in known]:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "There is no such upload.",
            f"canvasUploadIds: {', '.join(unknown)}",
        )
    return found


def claim_uploads(connection: Connection, uploads: Sequence[Upload], message_id: str) -> None:
    """Notes that a stored message waits for them, so that they are kept."""
    claim(connection, [upload.id for upload in uploads], message_id)


async def write_queued(
    database: Database, link: EngineLink, workspace_id: str, clock: Callable[[], datetime]
) -> None:
    """Writes every upload that waits, oldest first; returns when all lie in the workspace.

    Raises:
        EngineRefused: the workspace cannot take one, for instance because its disk is full.
        EngineGone: the link was lost.
    """
    since = kept_since(clock())
    waiting = await until_stored(
        lambda: database.read(lambda c: waiting_uploads(c, workspace_id, since))
    )
    for upload in waiting:
        await _write(database, link, upload, clock)


async def _write(
    database: Database, link: EngineLink, upload: Upload, clock: Callable[[], datetime]
) -> None:
    content = await until_stored(lambda: database.read(lambda c: content_of(c, upload.id)))
    if content is None:
        return  # its workspace was deleted meanwhile
    written = await link.canvas_put(
        WriteCanvas(
            upload_id=UUID(upload.id),
            filename=upload.filename,
            base64=base64.b64encode(content).decode(),
        )
    )
    now = moment_text(clock())
    await until_stored(
        lambda: database.write(lambda c: mark_written(c, upload.id, written.filename, now))
    )

"""Canvas uploads that wait for their workspace, as rows."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update

from quarterdeck.service.db.tables import canvas_uploads
from quarterdeck.wire.canvas import display_path


@dataclass(frozen=True)
class Upload:
    """One upload without its content. `filename` is the one it was written under, once it was."""

    id: str
    workspace_id: str
    filename: str
    size_bytes: int
    message_id: str | None
    created_at: str
    written_at: str | None

    @property
    def file_path(self) -> str:
        """Where it lies in the workspace, as an agent may be told."""
        return display_path(self.filename)


_columns = tuple(canvas_uploads.c[field.name] for field in fields(Upload))


def add_upload(connection: Connection, content: bytes, **values: Any) -> None:
    """Stores an upload that waits."""
    row = {"content": content, "size_bytes": len(content), **values}
    connection.execute(insert(canvas_uploads).values(**row))


def find_uploads(connection: Connection, workspace_id: str, ids: Collection[str]) -> list[Upload]:
    """Those of a workspace that have one of the ids, oldest first."""
    return _uploads(
        connection, canvas_uploads.c.workspace_id == workspace_id, canvas_uploads.c.id.in_(ids)
    )


def uploads_of_message(connection: Connection, message_id: str) -> list[Upload]:
    """Those that a message names, oldest first."""
    return _uploads(connection, canvas_uploads.c.message_id == message_id)


def waiting_uploads(connection: Connection, workspace_id: str, since: str) -> list[Upload]:
    """Those that are not written: named by a message, or not made before `since`."""
    return _uploads(
        connection,
        canvas_uploads.c.workspace_id == workspace_id,
        canvas_uploads.c.written_at.is_(None),
        or_(canvas_uploads.c.message_id.is_not(None), canvas_uploads.c.created_at >= since),
    )


def content_of(connection: Connection, upload_id: str) -> bytes | None:
    """The bytes of an upload that is not written yet; None when it is gone."""
    statement = select(canvas_uploads.c.content).where(canvas_uploads.c.id == upload_id)
    return connection.execute(statement).scalar()


def claim(connection: Connection, ids: Collection[str], message_id: str) -> None:
    """Notes the message that names them; one that an earlier message named stays with that one."""
    statement = (
        update(canvas_uploads)
        .where(canvas_uploads.c.id.in_(ids), canvas_uploads.c.message_id.is_(None))
        .values(message_id=message_id)
    )
    connection.execute(statement)


def mark_written(connection: Connection, upload_id: str, filename: str, now: str) -> None:
    """It lies in the workspace under this name; its content is not kept any longer."""
    statement = (
        update(canvas_uploads)
        .where(canvas_uploads.c.id == upload_id)
        .values(written_at=now, filename=filename, content=b"")
    )
    connection.execute(statement)


def drop_uploads(connection: Connection, before: str) -> None:
    """Removes old ones, but none that a message still waits for."""
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

"""Open requests for a user token (RFC 8628)."""

from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection, delete, func, insert, select, update

from quarterdeck.service.db.tables import device_codes


@dataclass(frozen=True)
class DeviceRow:
    """One request; approved when it has a user."""

    id: str
    user_id: str | None
    denied: bool
    expires_at: str
    polled_at: str | None


def add_device(
    connection: Connection,
    device_hash: str,
    user_code: str,
    expires_at: str,
    user_id: str | None,
) -> None:
    """Stores a request. IntegrityError when another one has the code."""
    connection.execute(
        insert(device_codes).values(
            id=str(uuid4()),
            device_hash=device_hash,
            user_code=user_code,
            user_id=user_id,
            denied=False,
            expires_at=expires_at,
            polled_at=None,
        )
    )


def find_device(connection: Connection, device_hash: str) -> DeviceRow | None:
    """The request of a device code's digest."""
    columns = [device_codes.c[name] for name in DeviceRow.__dataclass_fields__]
    statement = select(*columns).where(device_codes.c.device_hash == device_hash)
    row = connection.execute(statement).first()
    return None if row is None else DeviceRow(*row)


def note_poll(connection: Connection, device_id: str, now: str) -> None:
    """Remembers when a device last asked."""
    statement = update(device_codes).where(device_codes.c.id == device_id)
    connection.execute(statement.values(polled_at=now))


def take_device(connection: Connection, device_id: str) -> bool:
    """Removes a request; False when another poll was first."""
    return (
        connection.execute(delete(device_codes).where(device_codes.c.id == device_id)).rowcount == 1
    )


def decide(connection: Connection, user_code: str, user_id: str | None, now: str) -> bool:
    """Approves an open request for a user, or denies it without one; False when none is open."""
    statement = (
        update(device_codes)
        .where(
            device_codes.c.user_code == user_code,
            device_codes.c.user_id.is_(None),
            device_codes.c.denied.is_(False),
            device_codes.c.expires_at > now,
        )
        .values(user_id=user_id, denied=user_id is None)
    )
    return connection.execute(statement).rowcount == 1


def count_waiting(connection: Connection, now: str) -> int:
    """How many requests wait for somebody to decide."""
    waiting = select(func.count()).where(
        device_codes.c.user_id.is_(None),
        device_codes.c.denied.is_(False),
        device_codes.c.expires_at > now,
    )
    return connection.execute(waiting).scalar_one()


def forget_expired(connection: Connection, before: str) -> None:
    """Removes requests that expired before a moment."""
    connection.execute(delete(device_codes).where(device_codes.c.expires_at < before))

"""Webhooks of hosts that were taken, so that none is taken twice."""

from sqlalchemy import Connection, delete, insert

from quarterdeck.service.db.tables import webhook_receipts as table


def add_receipt(connection: Connection, digest: str, now: str) -> None:
    """Notes a webhook.

    Raises:
        IntegrityError: it was taken before.
    """
    connection.execute(insert(table).values(digest=digest, received_at=now))


def forget_receipts(connection: Connection, before: str) -> int:
    """Drops what is older than a moment; returns how many there were."""
    return connection.execute(delete(table).where(table.c.received_at < before)).rowcount

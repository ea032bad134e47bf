"""Warm hooks and start hooks as rows: every version that was saved, at most one of them active."""

from uuid import uuid4

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from quarterdeck.service.db.tables import environment_hooks
from quarterdeck.wire.setup import HookKind


def active_hook(connection: Connection, environment_id: str, kind: HookKind) -> RowMapping | None:
    """The version in force, or None when there is none."""
    statement = select(environment_hooks).where(
        environment_hooks.c.environment_id == environment_id,
        environment_hooks.c.kind == kind,
        environment_hooks.c.is_active,
    )
    return connection.execute(statement).mappings().first()


def drop_active_hook(connection: Connection, environment_id: str, kind: HookKind) -> None:
    """Leaves no version in force; the saved ones stay, so that numbers only grow."""
    connection.execute(
        update(environment_hooks)
        .where(
            environment_hooks.c.environment_id == environment_id,
            environment_hooks.c.kind == kind,
        )
        .values(is_active=False)
    )


def save_hook(
    connection: Connection,
    organization_id: str,
    environment_id: str,
    kind: HookKind,
    content: str,
    now: str,
    active: bool = True,
) -> RowMapping:
    """Stores the next version and, unless told not to, puts it in force; returns it."""
    if active:
        drop_active_hook(connection, environment_id, kind)
    newest = connection.execute(
        select(func.max(environment_hooks.c.version)).where(
            environment_hooks.c.environment_id == environment_id,
            environment_hooks.c.kind == kind,
        )
    ).scalar()
    stored = connection.execute(
        insert(environment_hooks)
        .values(
            id=str(uuid4()),
            organization_id=organization_id,
            environment_id=environment_id,
            kind=kind,
            version=(newest or 0) + 1,
            content=content,
            is_active=active,
            created_at=now,
        )
        .returning(environment_hooks)
    )
    return stored.mappings().one()

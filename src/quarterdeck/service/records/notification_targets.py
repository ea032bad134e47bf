"""Targets of notifications as rows; their addresses are sealed."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from quarterdeck.service.db.tables import notification_targets


@dataclass(frozen=True)
class Target:
    """A person's target in one organization."""

    id: str
    url_sealed: str
    created_at: str


def put_target(connection: Connection, organization_id: str, user_id: str, target: Target) -> None:
    """Stores a target in the place of the one there was."""
    remove_target(connection, organization_id, user_id)
    values = {"organization_id": organization_id, "user_id": user_id, **vars(target)}
    connection.execute(insert(notification_targets).values(**values))


def find_target(connection: Connection, organization_id: str, user_id: str) -> Target | None:
    """The person's target."""
    found = targets_of(connection, organization_id, {user_id})
    return found[0] if found else None


def targets_of(
    connection: Connection, organization_id: str, user_ids: set[str] | None
) -> list[Target]:
    """The targets of some people, or of everybody in the organization."""
    table = notification_targets.c
    statement = select(table.id, table.url_sealed, table.created_at).where(
        table.organization_id == organization_id
    )
    if user_ids is not None:
        statement = statement.where(table.user_id.in_(user_ids))
    return [Target(*row) for row in connection.execute(statement.order_by(table.created_at))]


def remove_target(connection: Connection, organization_id: str, user_id: str) -> None:
    """Removes the person's target, if there is one."""
    table = notification_targets.c
    connection.execute(
        delete(notification_targets).where(
            table.organization_id == organization_id, table.user_id == user_id
        )
    )

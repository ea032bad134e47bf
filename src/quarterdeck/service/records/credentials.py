"""Keys of providers as rows: one for the organization, one for each user."""

from collections.abc import Iterable
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, insert, or_, select, update

from quarterdeck.service.db.tables import credentials, environment_files, environment_variables


def find_credential(
    connection: Connection, organization_id: str, user_id: str | None, provider: str
) -> RowMapping | None:
    """The user's own key, or the organization's when no user is given."""
    statement = select(credentials).where(_is(organization_id, user_id, provider))
    return connection.execute(statement).mappings().first()


def list_credentials(
    connection: Connection, organization_id: str, user_id: str | None
) -> list[RowMapping]:
    """Every key that counts for a user, one a provider: a personal one hides the organization's."""
    whose = credentials.c.user_id.is_(None)
    if user_id is not None:
        whose = or_(whose, credentials.c.user_id == user_id)
    statement = (
        select(credentials)
        .where(credentials.c.organization_id == organization_id, whose)
        .order_by(credentials.c.provider)
    )
    found: dict[str, RowMapping] = {}
    for row in connection.execute(statement).mappings():
        if row["user_id"] is not None or row["provider"] not in found:
            found[row["provider"]] = row
    return list(found.values())


def new_credential_id() -> str:
    """An id for a key that is about to be stored; the key is sealed to it."""
    return str(uuid4())


def put_credential(
    connection: Connection,
    credential_id: str,
    organization_id: str,
    user_id: str | None,
    provider: str,
    key_sealed: str,
    now: str,
) -> None:
    """Stores a key in place of the one that was there."""
    remove_credential(connection, organization_id, user_id, provider)
    connection.execute(
        insert(credentials).values(
            id=credential_id,
            organization_id=organization_id,
            user_id=user_id,
            provider=provider,
            key_sealed=key_sealed,
            created_at=now,
            updated_at=now,
            last_fetched_at=None,
        )
    )


def remove_credential(
    connection: Connection, organization_id: str, user_id: str | None, provider: str
) -> bool:
    """Removes a key; False when there is none."""
    done = connection.execute(delete(credentials).where(_is(organization_id, user_id, provider)))
    return done.rowcount > 0


def note_fetched(connection: Connection, credential_ids: Iterable[str], now: str) -> None:
    """These keys were handed to a workspace."""
    connection.execute(
        update(credentials)
        .where(credentials.c.id.in_(list(credential_ids)))
        .values(last_fetched_at=now)
    )


def _is(organization_id: str, user_id: str | None, provider: str) -> ColumnElement[bool]:
    whose = credentials.c.user_id.is_(None) if user_id is None else credentials.c.user_id == user_id
    return (
        (credentials.c.organization_id == organization_id)
        & whose
        & (credentials.c.provider == provider)
    )


def has_key_for(
    connection: Connection,
    organization_id: str,
    user_id: str | None,
    provider: str,
    variables: Iterable[str],
) -> bool:
    """Whether a user's replicas get a key for a provider: theirs, the organization's, a variable."""
    whose = or_(_is(organization_id, None, provider), _is(organization_id, user_id, provider))
    left = select(credentials.c.id).where(whose)
    named = select(environment_variables.c.id).where(
        environment_variables.c.organization_id == organization_id,
        environment_variables.c.key.in_(list(variables)),
    )
    return connection.execute(left.union_all(named).limit(1)).first() is not None


def has_login_for(connection: Connection, organization_id: str, logins: Iterable[str]) -> bool:
    """Whether an environment brings a file of a login, which is named relative to the home."""
    named = select(environment_files.c.id).where(
        environment_files.c.organization_id == organization_id,
        environment_files.c.path.in_([f"~/{login}" for login in logins]),
    )
    return connection.execute(named.limit(1)).first() is not None

"""Rows of models and credentials."""

from collections.abc import Iterable
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, insert, or_, select, update

from quarterdeck.service.db.tables import (
    agent_models,
    chats,
    credentials,
    environment_files,
    environment_variables,
    workspaces,
)
from quarterdeck.wire.agents import AgentModels

ANNOUNCED_LIMIT = 1 << 20
"""Longest announcement of models that is kept, as JSON."""


def keep_models(
    connection: Connection, workspace_id: str, chat_id: str, models: AgentModels, now: str
) -> None:
    """Store what the agent of a chat announced, for the user of its workspace.

    A session that is opened with a chosen model does not report the agent's default: the known one
    stays while the agent offers it.
    """
    of = connection.execute(
        select(workspaces.c.organization_id, workspaces.c.user_id, chats.c.provider)
        .join(chats, chats.c.workspace_id == workspaces.c.id)
        .where(chats.c.id == chat_id, workspaces.c.id == workspace_id)
    ).first()
    if of is None:
        return
    if models.default_model is None:
        known = announced_models(connection, of.organization_id, of.user_id, of.provider)
        if known.default_model in {model.id for model in models.models}:
            models = models.model_copy(update={"default_model": known.default_model})
    key = _key(of.organization_id, of.user_id, of.provider)
    text = models.model_dump_json(by_alias=True)
    if len(text) > ANNOUNCED_LIMIT:
        return
    connection.execute(delete(agent_models).filter_by(**key))
    connection.execute(insert(agent_models).values(**key, models_json=text, updated_at=now))


def announced_models(
    connection: Connection, organization_id: str, user_id: str | None, agent: str
) -> AgentModels:
    """Return the models that an agent announced last in a replica of a user, or of none.

    Nothing when it never did.
    """
    key = _key(organization_id, user_id, agent)
    text = connection.execute(select(agent_models.c.models_json).filter_by(**key)).scalar()
    return AgentModels(models=[]) if text is None else AgentModels.model_validate_json(text)


def _key(organization_id: str, user_id: str | None, agent: str) -> dict[str, str]:
    return {"organization_id": organization_id, "user_id": user_id or "", "agent": agent}


def find_credential(
    connection: Connection, organization_id: str, user_id: str | None, provider: str
) -> RowMapping | None:
    """Return the user's own key, or the organization's when no user is given."""
    statement = select(credentials).where(_is(organization_id, user_id, provider))
    return connection.execute(statement).mappings().first()


def list_credentials(
    connection: Connection, organization_id: str, user_id: str | None
) -> list[RowMapping]:
    """Return the keys that apply to a user; a personal key hides the organization's."""
    in_scope = credentials.c.user_id.is_(None)
    if user_id is not None:
        in_scope = or_(in_scope, credentials.c.user_id == user_id)
    statement = (
        select(credentials)
        .where(credentials.c.organization_id == organization_id, in_scope)
        .order_by(credentials.c.provider)
    )
    by_provider: dict[str, RowMapping] = {}
    for row in connection.execute(statement).mappings():
        if row["user_id"] is not None or row["provider"] not in by_provider:
            by_provider[row["provider"]] = row
    return list(by_provider.values())


def new_credential_id() -> str:
    """Return an id for a key that is about to be stored; the key is sealed to it."""
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
    """Store a key, replacing an earlier one."""
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
    """Remove a key; False when there is none."""
    done = connection.execute(delete(credentials).where(_is(organization_id, user_id, provider)))
    return done.rowcount > 0


def note_fetched(connection: Connection, credential_ids: Iterable[str], now: str) -> None:
    """Note that these keys were handed to a workspace."""
    connection.execute(
        update(credentials)
        .where(credentials.c.id.in_(list(credential_ids)))
        .values(last_fetched_at=now)
    )


def _is(organization_id: str, user_id: str | None, provider: str) -> ColumnElement[bool]:
    in_scope = (
        credentials.c.user_id.is_(None) if user_id is None else credentials.c.user_id == user_id
    )
    return (
        (credentials.c.organization_id == organization_id)
        & in_scope
        & (credentials.c.provider == provider)
    )


def has_key_for(
    connection: Connection,
    organization_id: str,
    user_id: str | None,
    provider: str,
    variables: Iterable[str],
) -> bool:
    """Return whether a user's replicas get a key: the user's, the organization's, or a variable."""
    in_scope = or_(_is(organization_id, None, provider), _is(organization_id, user_id, provider))
    stored = select(credentials.c.id).where(in_scope)
    named = select(environment_variables.c.id).where(
        environment_variables.c.organization_id == organization_id,
        environment_variables.c.key.in_(list(variables)),
    )
    return connection.execute(stored.union_all(named).limit(1)).first() is not None


def has_login_for(connection: Connection, organization_id: str, logins: Iterable[str]) -> bool:
    """Return whether an environment has a login file, named relative to the home directory."""
    named = select(environment_files.c.id).where(
        environment_files.c.organization_id == organization_id,
        environment_files.c.path.in_([f"~/{login}" for login in logins]),
    )
    return connection.execute(named.limit(1)).first() is not None

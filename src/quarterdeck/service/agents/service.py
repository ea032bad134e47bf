"""Agents that can be chosen, and the credentials of their providers."""

import asyncio
import logging

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.agents.rows import (
    find_credential,
    has_key_for,
    has_login_for,
    new_credential_id,
    put_credential,
    remove_credential,
)
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import credentials
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import is_owner
from quarterdeck.service.formats import moment_text
from quarterdeck.service.quotas import require_room
from quarterdeck.wire.agents import Agent, CredentialSet, CredentialStatus
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)

API_KEY, LOGIN = "api_key", "login"


async def agents_for(
    context: ServiceContext,
    organization_id: str,
    user_id: str | None,
    workspace_id: str | None = None,
) -> list[Agent]:
    """Return the agents, each with its availability in replicas of this user.

    One that lacks a key may be used where the organization has one for it, as a credential or as a
    variable of an environment, or where an environment has the login file; in a given workspace
    also when somebody logged in there.
    """
    agents = await asyncio.to_thread(context.agents)  # looks for programs on the disk
    if not any(agent.missing_keys for agent in agents):
        return agents

    def judge(connection: Connection) -> list[Agent]:
        own = is_owner(connection, user_id)
        return [_judged(connection, organization_id, user_id, own, agent) for agent in agents]

    judged = await context.database.read(judge)
    if workspace_id is None:
        return judged
    return [await _judged_there(context, workspace_id, agent) for agent in judged]


async def usable_agent(
    context: ServiceContext,
    organization_id: str,
    user_id: str | None,
    agent_id: str,
    field: str,
    workspace_id: str | None = None,
) -> str:
    """Return the id of an agent that can be used now, in a workspace if one is given.

    A known agent that cannot be used is refused as well: what it needs can be provided before a
    replica waits for it. `field` is the request field that named the agent.

    Raises:
        ApiError: INVALID_REQUEST, with the known agents or the reason.
    """
    agents = await agents_for(context, organization_id, user_id, workspace_id)
    agent = next((agent for agent in agents if agent.id == agent_id), None)
    if agent is None:
        known = ", ".join(agent.id for agent in agents)
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There is no such agent.", f"{field}: one of {known}"
        )
    if not agent.available:
        reason = agent.reason or "it is not set up"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{agent.name} cannot be used: {reason}", field)
    return agent.id


def _judged(
    connection: Connection, organization_id: str, user_id: str | None, own: bool, agent: Agent
) -> Agent:
    if not agent.missing_keys:
        return agent
    if (own and agent.own_key) or has_key_for(
        connection, organization_id, user_id, agent.id, agent.missing_keys
    ):
        access = API_KEY
    elif has_login_for(connection, organization_id, agent.logins):
        access = LOGIN
    else:
        return agent
    return _usable(agent, access)


async def _judged_there(context: ServiceContext, workspace_id: str, agent: Agent) -> Agent:
    """Return an agent that lacks a key, in a workspace where somebody may have logged in with it."""
    if agent.available or not agent.missing_keys:
        return agent
    for login in agent.logins:
        directory, _, name = login.rpartition("/")
        try:
            driver = await context.driver(workspace_id)
            kept = await driver.kept_file(workspace_id, directory, name.encode(), 0)
        except SandboxError as e:
            log.info("The home of %s cannot be read: %s", workspace_id, e)
            continue
        if kept is not None:
            return _usable(agent, LOGIN)
    return agent


def _usable(agent: Agent, access: str) -> Agent:
    return agent.model_copy(update={"available": True, "reason": None, "auth_method": access})


SHOWN = 4
"""Characters of a key that are shown at either end,"""
SHORT = 2 * SHOWN
"""unless it has no more than this: then it would be shown entirely."""
MASK = "*" * 8
"""Of fixed length, so that it does not reveal the key's."""


def masked(key: str) -> str:
    """Return what may be shown of a key."""
    return MASK if len(key) <= SHORT else f"{key[:SHOWN]}{MASK}{key[-SHOWN:]}"


async def credential_status(
    context: ServiceContext, organization_id: str, user_id: str | None, provider: str
) -> CredentialStatus:
    """Return whether the user, or the organization when none is given, has a key of the provider.

    Raises:
        StorageError: the key cannot be opened.
    """
    row = await context.database.read(
        lambda c: find_credential(c, organization_id, user_id, provider)
    )
    if row is None:
        return CredentialStatus(has_credentials=False)
    key = context.vault.unseal(row["id"], row["key_sealed"])
    return CredentialStatus.model_validate(
        {
            "has_credentials": True,
            "credential_id": row["id"],
            "api_key": masked(key),
            "last_fetched_at": row["last_fetched_at"],
        }
    )


async def set_credential(
    context: ServiceContext, organization_id: str, user_id: str | None, provider: str, key: str
) -> CredentialSet:
    """Store a key, replacing an earlier one; workspaces started from now on get it.

    Raises:
        ApiError: CONFLICT when it is being set concurrently, QUOTA_REACHED.
    """
    credential_id = new_credential_id()
    sealed = context.vault.seal(credential_id, key)
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        if find_credential(connection, organization_id, user_id, provider) is None:
            require_room(connection, credentials, organization_id, user_id)
        put_credential(connection, credential_id, organization_id, user_id, provider, sealed, now)

    try:
        await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(ErrorCode.CONFLICT, "This key is being set elsewhere. Retry.") from e
    return CredentialSet.model_validate({"credential_id": credential_id})


async def delete_credential(
    context: ServiceContext, organization_id: str, user_id: str | None, provider: str
) -> None:
    """Remove a key.

    Raises:
        ApiError: NOT_FOUND when there is none.
    """
    if not await context.database.write(
        lambda c: remove_credential(c, organization_id, user_id, provider)
    ):
        raise ApiError(
            ErrorCode.NOT_FOUND, "No key is set for this provider.", f"provider: {provider}"
        )

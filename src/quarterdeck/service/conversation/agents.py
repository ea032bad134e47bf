"""Which agents there are for somebody, and which one a request means."""

import asyncio
import logging

from sqlalchemy import Connection

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import is_owner
from quarterdeck.service.records.credentials import has_key_for, has_login_for
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)

API_KEY, LOGIN = "api_key", "login"


async def agents_for(
    context: ServiceContext,
    organization_id: str,
    user_id: str | None,
    workspace_id: str | None = None,
) -> list[Agent]:
    """The agents, each judged by what replicas of this user would be given for it.

    One that lacks a key may be used where the organization has one for it, as a credential or as a
    variable of an environment, or where an environment brings the file of a login; in a workspace
    that is named also when somebody logged in there.
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
    """The id of an agent that can be used now, in a workspace where one is named.

    An agent that is known but cannot be used is refused as well: what it needs can be seen to
    before there is a replica that waits for it. `field` is what named the agent.

    Raises:
        ApiError: INVALID_REQUEST, with the known agents or the reason.
    """
    agents = await agents_for(context, organization_id, user_id, workspace_id)
    found = next((agent for agent in agents if agent.id == agent_id), None)
    if found is None:
        known = ", ".join(agent.id for agent in agents)
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There is no such agent.", f"{field}: one of {known}"
        )
    if not found.available:
        reason = found.reason or "it is not set up"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{found.name} cannot be used: {reason}", field)
    return found.id


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
    """An agent that lacks a key, in a workspace where somebody may have logged in with it."""
    if agent.available or not agent.missing_keys:
        return agent
    for login in agent.logins:
        directory, _, name = login.rpartition("/")
        try:
            kept = await context.sandboxes.kept_file(workspace_id, directory, name.encode(), 0)
        except SandboxError as e:
            log.info("The home of %s cannot be read: %s", workspace_id, e)
            continue
        if kept is not None:
            return _usable(agent, LOGIN)
    return agent


def _usable(agent: Agent, access: str) -> Agent:
    return agent.model_copy(update={"available": True, "reason": None, "auth_method": access})

"""Making a replica: record, first chat and first message in one transaction, answered at once."""

import json
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.agents import usable_agent
from quarterdeck.service.conversation.composing import Composed, compose, email_of
from quarterdeck.service.environments.sources import repositories_for
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.transitions import check_limit, status_event
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.urls import check_webhook_url
from quarterdeck.service.records.chats import add_chat
from quarterdeck.service.records.messages import add_message
from quarterdeck.service.records.warm_pools import claim_one
from quarterdeck.service.records.workspaces import add_workspace
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import CreateReplica, WorkspaceStatus

SECRET_BYTES = 32


@dataclass(frozen=True)
class _Making:
    """One request, checked as far as that goes without the database."""

    workspace_id: str
    body: CreateReplica
    agent: str
    composed: Composed
    caller: Caller
    now: str
    limit: int


async def create_replica(
    context: ServiceContext, fleet: Fleet, caller: Caller, body: CreateReplica
) -> str:
    """Stores a replica and begins to prepare it; returns its id.

    An unknown agent and one that cannot be used are both refused.

    Raises:
        ApiError: NOT_FOUND for an unknown environment, CONFLICT for a name that is taken,
            INVALID_REQUEST, WORKSPACE_LIMIT_REACHED.
    """
    check_webhook_url(body.webhook_url)
    wanted = BUILTIN if body.coding_agent is None else body.coding_agent
    agent = await usable_agent(context, caller.organization_id, wanted, "coding_agent")
    now = moment_text(context.clock())
    limit = fleet.settings.active_limit
    making = _Making(str(uuid4()), body, agent, compose(body), caller, now, limit)
    try:
        made = await context.event_log.write(lambda writer: _store(writer, making))
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "A replica has this name already.", f"name: {body.name}"
        ) from e
    if made == making.workspace_id:
        fleet.of(made).begin()
    else:
        fleet.of(made).claimed()
        fleet.pools.nudge()
    return made


def _store(writer: LogWriter, making: _Making) -> str:
    """Stores the replica, prepared ahead if there is such a one; returns its id."""
    connection = writer.connection
    repositories = _repositories(connection, making)
    check_limit(writer, making.caller.organization_id, making.limit)
    made = _claim(connection, making, repositories)
    if made is None:
        made = making.workspace_id
        secret = secrets.token_hex(SECRET_BYTES)
        columns = {"organization_id": making.caller.organization_id, **_columns(making)}
        add_workspace(connection, made, repositories, engine_secret=secret, **columns)
    chat_id = str(uuid4())
    add_chat(connection, made, chat_id, making.agent, making.now)
    if making.composed.text.strip():
        email = email_of(connection, making.caller)
        message = making.composed.placed(chat_id, making.caller, making.now, None, email)
        add_message(connection, made, message)
    writer.append(made, [status_event(WorkspaceStatus.PREPARING)])
    return made


def _columns(making: _Making) -> dict[str, Any]:
    """What the request says of the workspace."""
    body = making.body
    return {
        "environment_id": str(body.environment_id),
        "user_id": making.caller.user_id,
        "name": body.name,
        "source": "api",
        "coding_agent": making.agent,
        "model": body.model,
        "lifecycle_policy": body.lifecycle_policy or "default",
        "config_json": body.config and body.config.model_dump_json(exclude_none=True),
        "auto_stop_minutes": body.config and body.config.auto_stop_minutes,
        "size": body.size or "small",
        "webhook_url": body.webhook_url,
        "created_at": making.now,
        "last_activity_at": making.now,
    }


def _claim(
    connection: Connection, making: _Making, repositories: list[dict[str, str]]
) -> str | None:
    """Takes a workspace that was prepared ahead, for a request that wants no other than those."""
    if making.body.size == "large":
        return None
    return claim_one(
        connection, str(making.body.environment_id), json.dumps(repositories), _columns(making)
    )


def _repositories(connection: Connection, making: _Making) -> list[dict[str, str]]:
    """What the environment puts into the workspace."""
    caller, wanted = making.caller, str(making.body.environment_id)
    found = repositories_for(connection, caller.organization_id, caller.user_id, wanted)
    if found is None:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {wanted}"
        )
    return found

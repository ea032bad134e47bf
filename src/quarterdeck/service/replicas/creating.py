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
from quarterdeck.service.conversation.making import store_chat
from quarterdeck.service.environments.sources import repositories_for
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.transitions import check_limit, tell_status
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.urls import check_webhook_url
from quarterdeck.service.records.messages import add_message
from quarterdeck.service.records.warm_pools import claim_one
from quarterdeck.service.records.workspaces import add_workspace
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import CreateReplica, WorkspaceStatus

SECRET_BYTES = 32


@dataclass(frozen=True)
class Making:
    """One request, checked as far as that goes without the database."""

    workspace_id: str
    home_id: str
    body: CreateReplica
    agent: str
    composed: Composed
    caller: Caller
    now: str
    limit: int
    source: str


@dataclass(frozen=True)
class Made:
    """A stored replica; `message_id` is None when it came without a message."""

    workspace_id: str
    chat_id: str
    message_id: str | None
    claimed: bool


async def create_replica(
    context: ServiceContext, fleet: Fleet, caller: Caller, body: CreateReplica
) -> str:
    """Stores a replica and begins to prepare it; returns its id.

    An unknown agent and one that cannot be used are both refused.

    Raises:
        ApiError: NOT_FOUND for an unknown environment, CONFLICT for a name that is taken,
            INVALID_REQUEST, WORKSPACE_LIMIT_REACHED.
    """
    making = await plan_replica(context, fleet, caller, body)
    try:
        made = await context.event_log.write(lambda writer: store_replica(writer, making))
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "A replica has this name already.", f"name: {body.name}"
        ) from e
    begin_replica(fleet, made)
    return made.workspace_id


async def plan_replica(
    context: ServiceContext,
    fleet: Fleet,
    caller: Caller,
    body: CreateReplica,
    source: str = "api",
) -> Making:
    """Checks a request.

    Raises:
        ApiError: INVALID_REQUEST for an agent that cannot be used, or an address that may not be.
    """
    check_webhook_url(body.webhook_url)
    wanted = BUILTIN if body.coding_agent is None else body.coding_agent
    agent = await usable_agent(
        context, caller.organization_id, caller.user_id, wanted, "coding_agent"
    )
    now = moment_text(context.clock())
    limit = fleet.settings.active_limit
    composed = compose(body)
    _check(composed, body)
    return Making(str(uuid4()), context.home_id, body, agent, composed, caller, now, limit, source)


def begin_replica(fleet: Fleet, made: Made) -> None:
    """Begins to prepare what was stored."""
    if made.claimed:
        fleet.of(made.workspace_id).claimed()
        fleet.pools.nudge()
    else:
        fleet.of(made.workspace_id).begin()


def _check(composed: Composed, body: CreateReplica) -> None:
    """Without text there is no message that images could go with."""
    if body.images and not composed.text.strip():
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Images need a message.", "images: without a message"
        )


def store_replica(writer: LogWriter, making: Making) -> Made:
    """Stores the replica, prepared ahead if there is such a one.

    Raises:
        ApiError: NOT_FOUND for an unknown environment, WORKSPACE_LIMIT_REACHED.
        IntegrityError: its name is taken.
    """
    connection = writer.connection
    repositories = _repositories(connection, making)
    check_limit(writer, making.caller.organization_id, making.home_id, making.limit)
    claimed = _claim(connection, making, repositories)
    made = claimed or making.workspace_id
    if claimed is None:
        secret = secrets.token_hex(SECRET_BYTES)
        columns = {"organization_id": making.caller.organization_id, **_columns(making)}
        own = {"home_id": making.home_id, "engine_secret": secret}
        add_workspace(connection, made, repositories, **own, **columns)
    tell_status(writer, made, WorkspaceStatus.PREPARING)
    chat_id, message_id = str(uuid4()), None
    store_chat(writer, made, chat_id, making.agent, making.now)
    if making.composed.text.strip():
        email = email_of(connection, making.caller)
        message = making.composed.placed(chat_id, making.caller, making.now, None, email)
        add_message(connection, made, message)
        message_id = message.id
    return Made(made, chat_id, message_id, claimed is not None)


def _columns(making: Making) -> dict[str, Any]:
    """What the request says of the workspace."""
    body = making.body
    return {
        "environment_id": str(body.environment_id),
        "user_id": making.caller.user_id,
        "name": body.name,
        "source": making.source,
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
    connection: Connection, making: Making, repositories: list[dict[str, str]]
) -> str | None:
    """Takes a workspace that was prepared ahead, for a request that wants no other than those."""
    if making.body.size == "large":
        return None
    wanted, there = str(making.body.environment_id), json.dumps(repositories)
    return claim_one(connection, making.home_id, wanted, there, _columns(making))


def _repositories(connection: Connection, making: Making) -> list[dict[str, str]]:
    """What the environment puts into the workspace."""
    caller, wanted = making.caller, str(making.body.environment_id)
    found = repositories_for(connection, caller.organization_id, caller.user_id, wanted)
    if found is None:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {wanted}"
        )
    return found

"""Making a replica: record, first chat and first message in one transaction, answered at once."""

import secrets
from dataclasses import dataclass
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
from quarterdeck.service.records.chats import add_chat
from quarterdeck.service.records.messages import add_message
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
    agent = await usable_agent(context, body.coding_agent or BUILTIN, "coding_agent")
    now = moment_text(context.clock())
    limit = fleet.settings.active_limit
    making = _Making(str(uuid4()), body, agent, compose(body), caller, now, limit)
    try:
        await context.event_log.write(lambda writer: _store(writer, making))
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "A replica has this name already.", f"name: {body.name}"
        ) from e
    fleet.of(making.workspace_id).begin()
    return making.workspace_id


def _store(writer: LogWriter, making: _Making) -> None:
    connection, body = writer.connection, making.body
    repositories = _repositories(connection, making)
    check_limit(writer, making.caller.organization_id, making.limit)
    add_workspace(
        connection,
        making.workspace_id,
        repositories,
        organization_id=making.caller.organization_id,
        environment_id=str(body.environment_id),
        user_id=making.caller.user_id,
        name=body.name,
        source="api",
        coding_agent=making.agent,
        model=body.model,
        lifecycle_policy=body.lifecycle_policy or "default",
        config_json=None if body.config is None else body.config.model_dump_json(exclude_none=True),
        auto_stop_minutes=body.config and body.config.auto_stop_minutes,
        size=body.size or "small",
        webhook_url=body.webhook_url,
        engine_secret=secrets.token_hex(SECRET_BYTES),
        created_at=making.now,
        last_activity_at=making.now,
    )
    chat_id = str(uuid4())
    add_chat(connection, making.workspace_id, chat_id, making.agent, making.now)
    if making.composed.text.strip():
        email = email_of(connection, making.caller)
        message = making.composed.placed(chat_id, making.caller, making.now, None, email)
        add_message(connection, making.workspace_id, message)
    writer.append(making.workspace_id, [status_event(WorkspaceStatus.PREPARING)])


def _repositories(connection: Connection, making: _Making) -> list[dict[str, str]]:
    """What the environment puts into the workspace."""
    caller, wanted = making.caller, str(making.body.environment_id)
    found = repositories_for(connection, caller.organization_id, caller.user_id, wanted)
    if found is None:
        raise ApiError(
            ErrorCode.NOT_FOUND, "No environment has this id.", f"environment_id: {wanted}"
        )
    return found

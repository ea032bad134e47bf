"""The workspace that a hook is tested in."""

import secrets
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.access import reach
from quarterdeck.service.environments.sources import repositories_for
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.transitions import tell_status
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.hooks import active_hook
from quarterdeck.service.records.workspaces import add_workspace
from quarterdeck.service.workspace_setup.states import WarmState
from quarterdeck.service.workspace_setup.trial import Trial
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.setup import HookKind

SECRET_BYTES = 32


@dataclass(frozen=True)
class Asked:
    """What is to be tested; without content the version in force."""

    caller: Caller
    environment: str
    kind: HookKind
    content: str | None


async def make_workspace(context: ServiceContext, asked: Asked) -> str:
    """Stores the workspace of a test; returns its id.

    Raises:
        ApiError: NOT_FOUND when there is no such environment, INVALID_REQUEST when there is
            nothing to test.
    """
    made, now = str(uuid4()), moment_text(context.clock())
    await context.event_log.write(lambda writer: _store(writer, asked, made, context.home_id, now))
    return made


def _store(writer: LogWriter, asked: Asked, made: str, home_id: str, now: str) -> None:
    connection, caller = writer.connection, asked.caller
    of = reach(connection, caller, asked.environment)
    organization, user = caller.organization_id, caller.user_id
    add_workspace(
        connection,
        made,
        repositories_for(connection, organization, user, of) or [],
        home_id=home_id,
        organization_id=organization,
        environment_id=of,
        user_id=user,
        name=f"test-{made}",
        source="api",
        lifecycle_policy="default",
        size="small",
        config_json=_trial(connection, of, asked).as_json(),
        engine_secret=secrets.token_hex(SECRET_BYTES),
        warm_state=WarmState.TESTING,
        created_at=now,
        last_activity_at=now,
    )
    tell_status(writer, made, WorkspaceStatus.PREPARING)


def _trial(connection: Connection, environment_id: str, asked: Asked) -> Trial:
    own = {kind: active_hook(connection, environment_id, kind) for kind in HookKind}
    content, active = asked.content, own[asked.kind]
    if content is None and active is not None:
        content = str(active["content"])
    if content is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There is no hook in force. Give its content.", "content"
        )
    return Trial(
        kind=asked.kind,
        content=content,
        own_warm=own[HookKind.WARM] is not None,
        own_start=own[HookKind.START] is not None,
    )

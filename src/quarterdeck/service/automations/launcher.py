"""Launch runs.

Starts a waiting run: its workspace, chat and message are stored together with its new state. So a
run has one workspace, whichever process is killed, and however many services look for work.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.automations.prompts import Ticket, TriggerEvent, compose_prompt
from quarterdeck.service.automations.rows import find_automation
from quarterdeck.service.automations.run_rows import (
    STARTED,
    change_execution,
    earlier_pending,
    find_execution,
    may_start,
    newest_of_group,
)
from quarterdeck.service.automations.runs import (
    AWAITED,
    finish,
    mark_creating,
    mark_running,
    occasion_of,
)
from quarterdeck.service.automations.service import caller_for, head_starts, modes_of, replica_for
from quarterdeck.service.chats.messages import begin_delivery, plan_message, store_message
from quarterdeck.service.chats.rows import find_chat
from quarterdeck.service.checks.service import OpenedCheck
from quarterdeck.service.checks.sync_worker import CheckSender
from quarterdeck.service.context import Context, ServiceContext, parts
from quarterdeck.service.db.records import stored_json, stored_moment
from quarterdeck.service.errors import ApiError, DamagedRecordError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.fleet.fleet import Fleet, FleetDep
from quarterdeck.service.formats import moment_text
from quarterdeck.service.hosts.settings import address_of
from quarterdeck.service.ownership import ALIVE
from quarterdeck.service.replicas.create import (
    Making,
    StoredReplica,
    begin_replica,
    plan_replica,
    store_replica,
)
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.system_rows import find_service, owner_of
from quarterdeck.wire.automation_runs import ExecutionStatus, PullRequestRef
from quarterdeck.wire.chats import SendMessage
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.repositories import Repository

Row = RowMapping

SAME = ("environment_id", "agent_provider", "workspace_size")
"""The settings that must match for a later run to use the workspace."""


@dataclass(frozen=True)
class RunGroup:
    """The runs that a run depends on: one that it waits for, or one whose workspace it joins."""

    before: Row | None = None
    joined: Row | None = None


ALONE = RunGroup()


def company_of(connection: Connection, execution: Row, automation: Row, home_id: str) -> RunGroup:
    """Return the group of a waiting run; `ALONE` when its trigger does not group.

    | the newest run of the group that has not failed | the run |
    |---|---|
    | has not started yet | waits until it has |
    | has a workspace and has not ended | is the next message there, in its chat |
    | has ended, and its workspace is still active | the same |
    | has ended, and its workspace is not active, or its service is unreachable | gets its own workspace |
    | started with another environment, agent or size | gets its own workspace |
    | has a chat that was deleted | gets its own workspace |

    `home_id` is the home of the calling service.
    """
    group = execution["group_key"]
    if group is None or not occasion_of(execution).joins:
        return ALONE
    before = earlier_pending(connection, execution)
    if before is not None:
        return RunGroup(before=before)
    newest = newest_of_group(connection, automation["id"], group)
    if newest is None or not _fits(connection, newest, automation, home_id):
        return ALONE
    return RunGroup(joined=newest)


def _fits(connection: Connection, run: Row, automation: Row, home_id: str) -> bool:
    try:
        kept = stored_json(run["config_json"], dict)
    except DamagedRecordError:
        return False  # of the earlier run; the new one gets its own workspace
    if any(kept.get(name) != automation[name] for name in SAME):
        return False
    workspace = find_workspace(connection, run["workspace_id"])
    if workspace is None or find_chat(connection, workspace.id, run["chat_id"]) is None:
        return False
    if run["status"] in STARTED:
        return workspace.status != WorkspaceStatus.ERROR
    if workspace.status != WorkspaceStatus.ACTIVE:
        return False
    return _is_attended(connection, workspace.id, home_id)


def _is_attended(connection: Connection, workspace_id: str, home_id: str) -> bool:
    """Return whether the service that owns a workspace is alive: nothing waits for a dead one."""
    owner = owner_of(connection, workspace_id)
    if owner is None or owner.home_id in (None, home_id):
        return True
    service = find_service(connection, owner.home_id, ALIVE)
    return service is not None and service.alive


NO_PLACE_SECONDS = 20
"""Seconds before a run that was over the limit is tried again."""

log = logging.getLogger(__name__)


async def put_off(
    context: ServiceContext, execution_id: str, seconds: float, not_before: str | None = None
) -> None:
    """Postpone a run by some seconds, from now or from a later moment."""
    now = context.clock()
    since = now if not_before is None else max(now, stored_moment(not_before))
    due = moment_text(since + timedelta(seconds=seconds))
    waiting = (ExecutionStatus.PENDING,)
    await context.database.write(lambda c: change_execution(c, execution_id, waiting, due_at=due))


async def refuse(context: ServiceContext, execution_id: str, error: ApiError) -> None:
    """Postpone a run that is over the limit; end any other with the reason."""
    now = context.clock()
    again = moment_text(now + timedelta(seconds=NO_PLACE_SECONDS))

    def run(connection: Connection) -> None:
        if error.code in (ErrorCode.WORKSPACE_LIMIT_REACHED, ErrorCode.ENGINE_UNREACHABLE):
            change_execution(connection, execution_id, (ExecutionStatus.PENDING,), due_at=again)
        else:
            why = error.message if error.details is None else f"{error.message} ({error.details})"
            finish(connection, execution_id, why, moment_text(now))

    log.info("A run was not started: %s", error.message)
    await context.database.write(run)


BEHIND_SECONDS = 1
"""Seconds between the checks of a run that waits for another run of its group."""
TRIES = 3


class _OverError(Exception):
    """Somebody else has started the run, or it has ended; this attempt is discarded."""


class _WaitsError(Exception):
    """The run waits for others of its automation; this attempt is discarded."""


class _MovedError(Exception):
    """Other runs of the group have changed; this attempt is discarded."""


async def _is_here(context: ServiceContext, workspace_id: str) -> bool:
    """Return whether this service starts a run that joins another; else its owner does.

    Raises:
        ApiError: ENGINE_UNREACHABLE: the owner is unreachable, and the run waits for it.
    """

    def look(connection: Connection) -> tuple[bool, bool]:
        owner = owner_of(connection, workspace_id)
        if owner is None or owner.home_id in (None, context.home_id):
            return True, True
        service = find_service(connection, owner.home_id, ALIVE)
        return False, service is not None and service.alive

    here, alive = await context.database.read(look)
    if not alive:
        raise ApiError(
            ErrorCode.ENGINE_UNREACHABLE, "The service that has the run's replica is away."
        )
    return here


def _found(
    connection: Connection, execution_id: str, home_id: str
) -> tuple[Row, Row, RunGroup] | None:
    """Return the run, its automation and the runs that it considers; None when it cannot start."""
    execution = find_execution(connection, execution_id)
    if execution is None or execution["status"] != ExecutionStatus.PENDING:
        return None
    if execution["approval"] == AWAITED or not may_start(connection, execution_id):
        return None
    automation = find_automation(connection, execution["automation_id"])
    assert automation is not None  # its runs are deleted with it
    return execution, automation, company_of(connection, execution, automation, home_id)


def _store(
    writer: LogWriter, making: Making, run: tuple[str, Row], opened: OpenedCheck | None
) -> StoredReplica:
    replica = store_replica(writer, making)
    assert replica.message_id is not None  # the prompt is never empty
    place = (replica.workspace_id, replica.chat_id, replica.message_id)
    if opened is not None:
        opened.store(writer.connection)
    if not mark_creating(writer.connection, *run, place, making.now):
        raise _OverError
    return replica


@dataclass(frozen=True)
class RunLauncher:
    """Starts waiting runs."""

    context: ServiceContext
    fleet: Fleet
    checks: CheckSender

    async def launch(self, execution_id: str) -> str | None:
        """Start a waiting run; return its workspace, None when it has none yet.

        A run that cannot be started ends with the reason; one that is over the limit, or whose
        replica belongs to an unreachable service, continues to wait. So does one that waits for
        approval, or for other runs of its automation.

        Raises:
            ApiError: WORKSPACE_LIMIT_REACHED, ENGINE_UNREACHABLE; INVALID_REQUEST and the like, when the run has ended.
        """
        try:
            return await self._try(execution_id)
        except DamagedRecordError as e:
            log.error("Run %s cannot be started: %s", execution_id, e.for_operator())
            error = ApiError(ErrorCode.INTERNAL_ERROR, str(e))
            await refuse(self.context, execution_id, error)
            raise error from e

    async def _try(self, execution_id: str) -> str | None:
        for _ in range(TRIES):
            rows = await self.context.database.read(
                lambda c: _found(c, execution_id, self.context.home_id)
            )
            if rows is None:
                return None
            try:
                return await self._launch(*rows)
            except (_OverError, _WaitsError):
                return None
            except _MovedError:
                continue
            except ApiError as e:
                await refuse(self.context, execution_id, e)
                raise
        await put_off(self.context, execution_id, BEHIND_SECONDS)
        return None

    async def _launch(self, execution: Row, automation: Row, company: RunGroup) -> str | None:
        if company.before is not None:
            await put_off(self.context, execution["id"], BEHIND_SECONDS, company.before["due_at"])
            return None
        if company.joined is not None:
            if not await _is_here(self.context, company.joined["workspace_id"]):
                return None
            return await self._follow_up(execution, automation, company.joined)
        return await self._start(execution, automation)

    async def _start(self, execution: Row, automation: Row) -> str | None:
        occasion, ticket, opened = await self._with_check(execution, automation)
        starts = await self.context.database.read(lambda c: head_starts(c, automation, occasion))
        checked_out = any(start.required for start in starts.values())
        text = compose_prompt(automation["prompt"], occasion, ticket, is_checked_out=checked_out)
        body = replica_for(automation, text)
        planning = plan_replica(
            self.context, self.fleet, caller_for(automation), body, "automation", starts
        )
        making = await planning

        def store(writer: LogWriter) -> StoredReplica:
            if company_of(writer.connection, execution, automation, self.context.home_id) != ALONE:
                raise _MovedError
            if not may_start(writer.connection, execution["id"]):
                raise _WaitsError
            return _store(writer, making, (execution["id"], automation), opened)

        try:
            replica = await self.context.event_log.write(store)
        except IntegrityError as e:
            raise ApiError(ErrorCode.CONFLICT, f"There is a replica {body.name} already.") from e
        begin_replica(self.fleet, replica)
        return replica.workspace_id

    async def _with_check(
        self, execution: Row, automation: Row
    ) -> tuple[TriggerEvent, Ticket | None, OpenedCheck | None]:
        """Return the event of the run, and its check with the ticket for the message."""
        occasion = occasion_of(execution)
        opened = await self.checks.open_for_run(execution, automation, occasion)
        if opened is None:
            return occasion, None, None
        return opened.occasion, opened.ticket, opened

    async def _follow_up(self, execution: Row, automation: Row, running: Row) -> str | None:
        """Start the run in the workspace of another, as the next message of its chat."""
        workspace_id = running["workspace_id"]
        occasion, ticket, opened = await self._with_check(execution, automation)
        text = compose_prompt(automation["prompt"], occasion, ticket)
        body = SendMessage(message=text, chat_id=UUID(running["chat_id"]), **modes_of(automation))
        sending = await plan_message(
            self.context, self.fleet, caller_for(automation), workspace_id, body
        )

        def store(writer: LogWriter) -> None:
            connection = writer.connection
            joined = company_of(connection, execution, automation, self.context.home_id).joined
            if joined is None or joined["id"] != running["id"]:
                raise _MovedError
            if not may_start(connection, execution["id"]):
                raise _WaitsError
            accepted = store_message(writer, sending)
            place = (workspace_id, str(accepted.chat_id), str(accepted.message_id))
            if opened is not None:
                opened.store(connection)
            if not mark_creating(connection, execution["id"], automation, place, sending.now):
                raise _OverError
            row = find_workspace(connection, workspace_id)
            if row is not None and row.status == WorkspaceStatus.ACTIVE:
                mark_running(connection, execution["id"], sending.now)

        await self.context.event_log.write(store)
        begin_delivery(self.fleet, workspace_id)
        return workspace_id


async def _launcher(request: Request, context: Context, fleet: FleetDep) -> RunLauncher:
    return RunLauncher(context, fleet, parts(request).checks)


LauncherDep = Annotated[RunLauncher, Depends(_launcher)]
"""Annotation of a route's parameter that takes the launcher."""


LISTED = 10


def full_name(repository: Repository) -> str:
    """Return `owner/name` as the host has it; of a local path the name it is connected under."""
    address = address_of(repository.url)
    return repository.name if address is None else address[1]


def as_connected(
    about: PullRequestRef, repositories: Sequence[Repository]
) -> tuple[PullRequestRef, tuple[str, ...]]:
    """Return the pull request under its repository's full name, and the ids of that repository.

    Raises:
        ApiError: INVALID_REQUEST when the name matches no connected repository, or several.
    """
    typed = about.repository.lower()
    matching = {
        full_name(repository)
        for repository in repositories
        if full_name(repository).lower() == typed
    }
    matching = matching or {
        full_name(repository) for repository in repositories if repository.name.lower() == typed
    }
    if len(matching) == 1:
        name = matching.pop()
        ids = tuple(
            str(repository.id) for repository in repositories if full_name(repository) == name
        )
        return about.model_copy(update={"repository": name}), ids
    if matching:
        raise _wrong(f"{about.repository} may be any of {_listed(matching)}: give the full name.")
    if not repositories:
        raise _wrong("No repository is connected that a pull request could be of.")
    there = _listed(map(full_name, repositories))
    raise _wrong(f"{about.repository} is not connected. Connected: {there}.")


def _listed(names: Iterable[str]) -> str:
    sorted_names = sorted(set(names), key=str.lower)
    more = f" and {len(sorted_names) - LISTED} more" if len(sorted_names) > LISTED else ""
    return ", ".join(sorted_names[:LISTED]) + more


def _wrong(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, why, "pr.repository")

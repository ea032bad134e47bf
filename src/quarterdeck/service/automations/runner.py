"""Carry out a run and follow it to its end.

The one owner of everything that automations do automatically.

It fires schedules, starts runs that wait, ends those that take too long, stops the work of those
that were ended, and removes old ones.

Its whole state is in the database, so it may be killed at any time, and several may run.

Publishes the work of runs that have succeeded, as their automation's `on_success` says.

Pending work is in the run's row, so a service that is killed publishes it after its restart: a push
and the opening of a pull request can be repeated. Only the owner of a run's replica publishes its
work.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.automations.executions import stop_work
from quarterdeck.service.automations.launcher import RunLauncher
from quarterdeck.service.automations.rows import next_scheduled
from quarterdeck.service.automations.run_follower import HEARD
from quarterdeck.service.automations.run_rows import (
    change_execution,
    due_executions,
    next_due,
    next_stop,
    to_stop,
)
from quarterdeck.service.automations.runs import store_run_change
from quarterdeck.service.automations.scheduler import (
    apply_retention,
    end_overdue,
    fire_due,
    overdue,
)
from quarterdeck.service.checks.sync_worker import CheckSender
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import log_storage_error, retry_until_stored
from quarterdeck.service.db.records import (
    as_record,
    stored_json,
    stored_moment,
    stored_objects,
    stored_word,
)
from quarterdeck.service.errors import (
    ApiError,
    DamagedRecordError,
    DatabaseClosedError,
    StorageError,
)
from quarterdeck.service.event_rows import StoredEvent
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.formats import moment_text
from quarterdeck.service.git.operations import GitOperations
from quarterdeck.service.git.pull_requests import PullRequestService
from quarterdeck.service.hosts.api import HostApis
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.service.system_rows import forget_receipts
from quarterdeck.wire.automation_runs import ExecutionStatus, Published
from quarterdeck.wire.automations import OnSuccess
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.git import GitState, OpenPullRequest, PushBranch

AGAIN_AFTER = timedelta(seconds=10)
TRIES = 30
"""After this many attempts the run keeps the error."""
PASSING = (
    ErrorCode.ENGINE_STARTING,
    ErrorCode.ENGINE_UNREACHABLE,
    ErrorCode.RATE_LIMITED,
    ErrorCode.WORKSPACE_NOT_ACTIVE,
)
"""Errors that may be temporary."""
DELETED = "Its replica was deleted before its work was published."

log = logging.getLogger(__name__)


async def publish_work(
    context: ServiceContext, fleet: Fleet, apis: HostApis, run: RowMapping
) -> None:
    """Push the work of a run and open pull requests, or note when to try again.

    Raises:
        DatabaseClosedError: the service ends.
    """
    again = None
    row = await context.database.read(lambda c: find_workspace(c, run["workspace_id"]))
    if row is None:
        done = [Published(error=DELETED)]
    else:
        done = await _publish(context, fleet, apis, row, run)
        tries = 1 + max((branch.tries for branch in _before(run)), default=0)
        if any(branch.passing for branch in done) and tries < TRIES:
            again = moment_text(context.clock() + AGAIN_AFTER)
        for branch in done:
            branch.tries = tries
    text = json.dumps([branch.model_dump(mode="json", exclude_none=True) for branch in done])
    await _store(context, run["id"], text, again)


def _before(run: RowMapping) -> list[Published]:
    branches = stored_objects(run["published_json"] or "[]")
    return [as_record(Published, branch) for branch in branches]


async def _publish(
    context: ServiceContext, fleet: Fleet, apis: HostApis, row: WorkspaceRow, run: RowMapping
) -> list[Published]:
    """Publish every repository with commits of its own."""
    settings = stored_json(run["config_json"], dict)
    wanted = stored_word(settings.get("on_success", OnSuccess.NONE), OnSuccess)
    operations = GitOperations(context, fleet, row)
    pulls = PullRequestService(context, operations, apis, row)
    try:
        states = (await operations.states()).repositories
    except ApiError as error:
        return [_failed(error)]
    done: list[Published] = []
    for state in states:
        if state.ahead != 0:
            done.append(await _publish_one(operations, pulls, state, wanted))
    return done


async def _publish_one(
    operations: GitOperations, pulls: PullRequestService, state: GitState, wanted: OnSuccess
) -> Published:
    name = state.repository
    try:
        if wanted is OnSuccess.PUSH:
            pushed = await operations.push(name, PushBranch())
            return Published(repository=name, branch=pushed.branch, commit=pushed.commit)
        draft = wanted is OnSuccess.DRAFT_PULL_REQUEST
        opened = await pulls.open(OpenPullRequest(repository=name, draft=draft))
        return Published(
            repository=name,
            branch=opened.head,
            commit=opened.head_sha,
            number=opened.number,
            url=opened.url,
        )
    except ApiError as error:
        log.warning("The work of a run could not be published: %s", error.message)
        return _failed(error, name)


def _failed(error: ApiError, repository: str | None = None) -> Published:
    text = f"{error.message} {error.details or ''}".strip()
    return Published(repository=repository, error=text[:2000], passing=error.code in PASSING)


async def _store(context: ServiceContext, run_id: str, text: str, again: str | None) -> None:
    now = moment_text(context.clock())

    def write(connection: Connection) -> None:
        completed = (ExecutionStatus.COMPLETED,)
        change_execution(connection, run_id, completed, published_json=text, stop_due_at=again)
        store_run_change(connection, run_id, now)

    await retry_until_stored(lambda: context.database.write(write))


RECEIPTS_KEPT = timedelta(days=7)
"""How long a repeated webhook of a host is recognized."""
TIDIED_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class RunnerSettings:
    """Limits of the runner; times in seconds."""

    longest_wait: float = 10.0
    """The database is checked after this at the latest, for changes by other services."""
    busy_wait: float = 1.0
    """And after this when something is due that could not be started."""
    at_once: int = 8
    """Runs that are being started at one time."""


class AutomationRunner:
    """Schedules and waiting runs of one service; started and closed with the application."""

    def __init__(
        self,
        context: ServiceContext,
        fleet: Fleet,
        checks: CheckSender,
        apis: HostApis,
        settings: RunnerSettings | None = None,
    ) -> None:
        self._context = context
        self._fleet = fleet
        self._launcher = RunLauncher(context, fleet, checks)
        self._apis = apis
        self.watch = context.changes
        self._settings = settings or RunnerSettings()
        self._called = asyncio.Event()
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._limited: dict[str, str] = {}
        """The automations of the runs that are being started, where they have a `concurrency`."""
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._tidied: datetime | None = None

    def start(self) -> None:
        """Start, first with everything that became due in the meantime."""
        self._task = asyncio.create_task(self._run(), name="automations")

    def nudge(self) -> None:
        """Note that an automation was changed, or a run stored."""
        self._called.set()
        self.watch.nudge()
        self._context.checks_changed.set()

    async def close(self) -> None:
        """Stop; runs that were being started are started by the next service."""
        launches = (*self._starting.values(), *self._stopping.values())
        tasks = [*launches, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def turn(self) -> None:
        """Fire due schedules, end overdue runs, and start the stops and launches that are due."""
        now = self._context.clock()
        fired = await self._fire_some(now)
        await self._end_overdue(now)
        await self._stop_due(moment_text(now))
        await self._start_due(moment_text(now))
        while fired:  # runs do not wait for all schedules: there may be thousands
            fired = await self._fire_some(now)
            await self._start_due(moment_text(now))
        await self._tidy(now)

    async def _run(self) -> None:
        try:
            while True:
                self._called.clear()
                # With the same moment below: what became due since is not overlooked.
                now = self._context.clock()
                try:
                    await self.turn()
                except DatabaseClosedError:
                    return
                except Exception:
                    # Whatever it is, the other automations go on.
                    log.exception("Automations could not be carried out; they are tried again")
                await self._wait(now)
        except DatabaseClosedError:
            return

    async def _tidy(self, now: datetime) -> None:
        """Remove receipts of webhooks and old runs, from time to time."""
        if self._tidied is not None and now - self._tidied < TIDIED_EVERY:
            return
        before = moment_text(now - RECEIPTS_KEPT)
        await retry_until_stored(
            lambda: self._context.database.write(lambda c: forget_receipts(c, before))
        )
        left = await retry_until_stored(lambda: apply_retention(self._context.database, now))
        self._tidied = None if left else now

    async def _end_overdue(self, now: datetime) -> None:
        database, home = self._context.database, self._context.home_id
        if await retry_until_stored(lambda: database.read(lambda c: overdue(c, now, home))):
            await retry_until_stored(lambda: database.write(lambda c: end_overdue(c, now, home)))
            self.watch.nudge()
            self._context.checks_changed.set()

    async def _fire_some(self, now: datetime) -> bool:
        """Fire some of the due schedules; return whether there were any."""
        fired = await retry_until_stored(lambda: self._fire(now))
        if fired:
            self.watch.nudge()
        return fired > 0

    async def _fire(self, now: datetime) -> int:
        first = await self._context.database.read(next_scheduled)
        if first is None or first > moment_text(now):
            return 0
        return await self._context.database.write(lambda c: fire_due(c, now))

    async def _stop_due(self, now: str) -> None:
        home, most = self._context.home_id, self._settings.at_once
        due = await retry_until_stored(
            lambda: self._context.database.read(lambda c: to_stop(c, now, home, most))
        )
        for row in due:
            if row["id"] not in self._stopping:
                task = asyncio.create_task(self._stop(row), name="stop of a run")
                self._stopping[row["id"]] = task
                task.add_done_callback(lambda _, id=row["id"]: self._stopped(id))

    async def _stop(self, row: RowMapping) -> None:
        context, fleet = self._context, self._fleet
        try:
            if row["status"] == ExecutionStatus.COMPLETED:
                await publish_work(context, fleet, self._apis, row)
            else:
                await stop_work(context, fleet, row)
        except DatabaseClosedError:
            return
        except DamagedRecordError as e:
            log.error("The end of run %s is not carried out: %s", row["id"], e.for_operator())

            def forget(connection: Connection) -> None:
                ended = (row["status"],)
                change_execution(connection, row["id"], only_from=ended, stop_due_at=None)

            await retry_until_stored(lambda: context.database.write(forget))
        except SandboxError:
            log.exception("The replica of run %s could not be put to sleep", row["id"])

    def _stopped(self, execution_id: str) -> None:
        self._stopping.pop(execution_id, None)
        self.nudge()

    async def _start_due(self, now: str) -> None:
        most = self._settings.at_once + len(self._starting)
        room = self._settings.at_once - len(self._starting)
        due = await retry_until_stored(
            lambda: self._context.database.read(lambda c: due_executions(c, now, most))
        )
        for row in due:
            # Runs of an automation with a limit start one at a time, so that the first one gets the
            # slot.
            limited = row["concurrency"] is not None
            blocked = limited and row["automation_id"] in self._limited.values()
            if room > 0 and row["id"] not in self._starting and not blocked:
                room -= 1
                if limited:
                    self._limited[row["id"]] = row["automation_id"]
                self._begin(row["id"])

    def _begin(self, execution_id: str) -> None:
        task = asyncio.create_task(self._launch(execution_id), name="start of a run")
        self._starting[execution_id] = task
        task.add_done_callback(lambda _: self._launch_ended(execution_id))

    def _launch_ended(self, execution_id: str) -> None:
        self._starting.pop(execution_id, None)
        self._limited.pop(execution_id, None)
        self.nudge()

    async def _launch(self, execution_id: str) -> None:
        try:
            await self._launcher.launch(execution_id)
        except ApiError:
            return  # kept with the run
        except DatabaseClosedError:
            return
        except StorageError as e:
            message = f"Run {execution_id} could not be started; it is tried again"
            log_storage_error(log, message, e)
            await asyncio.sleep(self._settings.longest_wait)
        except Exception:
            log.exception("Run %s could not be started; it is tried again", execution_id)
            await asyncio.sleep(self._settings.longest_wait)

    async def _wait(self, now: datetime) -> None:
        soonest = await retry_until_stored(
            lambda: self._context.database.read(
                lambda c: (next_scheduled(c), next_due(c), next_stop(c, self._context.home_id))
            )
        )
        delay = self._settings.longest_wait
        for text in soonest:
            if text is None:
                continue
            with suppress(DamagedRecordError):  # others wait no longer than the delay
                due = (stored_moment(text) - now).total_seconds()
                # Everything still due is being started, or belongs to another service.
                delay = min(delay, due + 0.001 if due > 0 else self._settings.busy_wait)
        try:
            async with asyncio.timeout(delay):
                await self._called.wait()
        except TimeoutError:
            return

    def hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        """Observe the event log."""
        types = {event.type for event in stored}
        if EventType.CHAT_TURN_COMPLETED in types:
            self.nudge()  # the work of a run may be published now
        elif not HEARD.isdisjoint(types):
            self.watch.nudge()
            self._context.checks_changed.set()

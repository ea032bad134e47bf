"""Start runs for events that match a trigger."""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from pydantic import ValidationError
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.automations.executions import read_execution
from quarterdeck.service.automations.launcher import RunLauncher, as_connected
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.automations.rows import add_skip, find_by_token, owner_of
from quarterdeck.service.automations.run_rows import (
    change_execution,
    find_execution,
    pending_for,
    replace_occasion,
)
from quarterdeck.service.automations.runs import (
    AWAITED,
    GIVEN,
    begin_run,
    needs_approval,
    occasion_of,
    stop_run,
    store_run_change,
    supersede,
    trigger_json,
)
from quarterdeck.service.automations.scheduler import secret_place
from quarterdeck.service.automations.service import Row, reach_automation, reach_execution
from quarterdeck.service.checks.calls import HostError
from quarterdeck.service.checks.sync_worker import CheckSender
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.records import stored_moment
from quarterdeck.service.errors import ApiError, DamagedRecordError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.hosts.api import HostApis
from quarterdeck.service.hosts.events import HostEvent
from quarterdeck.service.hosts.host_a import read_host_a
from quarterdeck.service.hosts.host_b import read_host_b
from quarterdeck.service.hosts.settings import HOST_A, HOST_B
from quarterdeck.service.hosts.webhooks import matches, signs
from quarterdeck.service.identity.authentication import hash_of
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.quotas import WaitingRuns, require_run_room
from quarterdeck.service.repositories.rows import list_repositories
from quarterdeck.service.system_rows import add_receipt, has_receipt
from quarterdeck.wire.automation_runs import (
    Execution,
    ExecutionReason,
    ExecutionStatus,
    Retried,
    SkipReason,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.automations import DEBOUNCE_TIMES, PAYLOAD_BYTES
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.json_size import has_too_many_values
from quarterdeck.wire.triggers import TriggerType

DEEPEST = 100
"""Nesting depth of lists and objects: code that walks through a value is recursive."""


def read_payload(body: bytes) -> Any:
    """Return the value of a body.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        value = json.loads(body, parse_constant=_no_number)
    except RecursionError as e:
        raise ValueError("it is too deep") from e
    if _is_too_deep(value):
        raise ValueError("it is too deep")
    return value


def _is_too_deep(value: Any) -> bool:
    layer = [value]
    for _ in range(DEEPEST + 1):
        layer = [part for item in layer for part in _parts(item)]
        if not layer:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(cast("dict[str, Any]", value).values())
        case list():
            return cast("list[Any]", value)
        case _:
            return []


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


CANCELED = "The run was canceled."


async def trigger_by_hand(
    context: ServiceContext,
    launcher: RunLauncher,
    caller: Caller,
    automation_id: str,
    body: TriggerAutomation,
) -> Triggered:
    """Start a run, also of an automation that is switched off.

    Raises:
        ApiError: NOT_FOUND, PAYLOAD_TOO_LARGE, QUOTA_REACHED; INVALID_REQUEST when it cannot be
            started, or its pull request's repository is not connected.
    """
    if len(json.dumps(body.payload)) > PAYLOAD_BYTES:
        raise too_large()
    now = moment_text(context.clock())
    event = None if body.pr is None else "pull_request"

    def run(connection: Connection) -> str:
        automation = reach_automation(connection, caller, automation_id)
        about, ids = None, ()
        if body.pr is not None:
            repositories = list_repositories(connection, automation["organization_id"])
            about, ids = as_connected(body.pr, repositories)
        require_run_room(connection, *owner_of(automation))
        # A run that a person starts is approved.
        occasion = TriggerEvent("manual", event, now, body.payload, about, repository_ids=ids)
        return begin_run(connection, automation, occasion, now)

    execution_id = await context.database.write(run)
    workspace_id = await _launched(launcher, execution_id)
    return Triggered.model_validate({"execution_id": execution_id, "workspace_id": workspace_id})


async def retry(
    context: ServiceContext,
    launcher: RunLauncher,
    caller: Caller,
    automation_id: str,
    execution_id: str,
) -> Retried:
    """Run a failed run again, with the automation's current settings (operation 17).

    Raises:
        ApiError: NOT_FOUND, QUOTA_REACHED; CONFLICT when it has not failed; INVALID_REQUEST when
            it cannot be started.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> str:
        automation, failed = reach_execution(connection, caller, automation_id, execution_id)
        if failed["status"] != ExecutionStatus.FAILED:
            raise ApiError(
                ErrorCode.CONFLICT,
                "Only a failed run can be retried.",
                f"status: {failed['status']}",
            )
        occasion = occasion_of(failed)
        awaiting = needs_approval(connection, automation, occasion)
        require_run_room(connection, *owner_of(automation), awaiting=awaiting)
        return begin_run(connection, automation, occasion, now, retry_of=failed)

    new_execution_id = await context.database.write(run)
    workspace_id = await _launched(launcher, new_execution_id)
    return Retried.model_validate({"execution_id": new_execution_id, "workspace_id": workspace_id})


async def approve(
    context: ServiceContext,
    launcher: RunLauncher,
    caller: Caller,
    automation_id: str,
    execution_id: str,
) -> Execution:
    """Approve a run that waits for approval.

    The run is approved as it was stored: for the commit of its event. Without a commit it cannot
    be approved, because it would start at whatever was pushed last.

    Raises:
        ApiError: NOT_FOUND; CONFLICT when it does not wait for approval, or its commit is not
            known; INVALID_REQUEST when it cannot be started.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        _, execution = reach_execution(connection, caller, automation_id, execution_id)
        waiting = execution["status"] == ExecutionStatus.PENDING
        if not (waiting and execution["approval"] == AWAITED):
            raise ApiError(
                ErrorCode.CONFLICT,
                "The run does not wait for approval.",
                f"status: {execution['status']}",
            )
        about = occasion_of(execution).pull_request
        if about is None or about.head_sha is None:
            raise ApiError(
                ErrorCode.CONFLICT,
                "The run cannot be approved: the commit of its pull request is not known.",
                "The host could not be asked for it. Repeat the comment, or start a run by hand.",
            )
        change_execution(
            connection,
            execution["id"],
            (ExecutionStatus.PENDING,),
            approval=GIVEN,
            approved_by=caller.user_id,
            approved_at=now,
            due_at=now,
        )
        store_run_change(connection, execution["id"], now)

    await context.database.write(run)
    await _launched(launcher, execution_id)
    return await read_execution(context, caller, automation_id, execution_id)


async def cancel(
    context: ServiceContext, caller: Caller, automation_id: str, execution_id: str
) -> Execution:
    """End a run that has not ended, and have the work of its agent stopped.

    Raises:
        ApiError: NOT_FOUND; CONFLICT when it has ended.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        _, execution = reach_execution(connection, caller, automation_id, execution_id)
        if not stop_run(connection, execution, CANCELED, ExecutionReason.CANCELED, now):
            raise ApiError(
                ErrorCode.CONFLICT, "The run has ended.", f"status: {execution['status']}"
            )

    await context.database.write(run)
    return await read_execution(context, caller, automation_id, execution_id)


PAYLOAD_VALUES = 100_000
"""Most values in the body of a call: to read more would hold up other requests."""


async def take_webhook(context: ServiceContext, token: str, body: bytes, signature: str) -> bool:
    """Accept a call of an automation's own webhook; return whether a run was started.

    `signature` is the value of `X-Signature-256`, checked when the automation has a secret.

    Raises:
        ApiError: NOT_FOUND for every call that starts nothing, with an unknown token as with a
            wrong signature; PAYLOAD_TOO_LARGE.
    """
    if len(body) > PAYLOAD_BYTES:
        raise too_large()

    def called(connection: Connection) -> Row:
        automation = find_by_token(connection, hash_of(token))
        if (
            automation is None
            or not automation["enabled"]
            or not _is_signed(context, automation, body, signature)
        ):
            raise ApiError(ErrorCode.NOT_FOUND, "There is no such webhook.")
        return automation

    await context.database.read(called)  # a stranger's body is not parsed, and waits for no writer
    if has_too_many_values(body, PAYLOAD_VALUES):
        raise too_large()
    payload, now = _payload_of(body), context.clock()

    def run(connection: Connection) -> bool:
        automation = called(connection)
        occasion = TriggerEvent(TriggerType.CUSTOM, None, moment_text(now), payload)
        return take_event(connection, WaitingRuns(connection), automation, occasion, now)

    return await context.database.write(run)


def _is_signed(context: ServiceContext, automation: Row, body: bytes, signature: str) -> bool:
    sealed = automation["webhook_secret_sealed"]
    if sealed is None:
        return True
    return signs(context.vault.unseal(secret_place(automation["id"]), sealed), signature, body)


def take_event(
    connection: Connection,
    waiting_runs: WaitingRuns,
    automation: Row,
    occasion: TriggerEvent,
    now: datetime,
    group_key: str | None = None,
    *,
    is_push: bool = False,
) -> bool:
    """Start a run for an external event, or replace the payload of a waiting one.

    Return whether a run was started: a burst changes nothing that anybody waits for. A run that
    waits for approval is not changed, so that the approved payload is the one that was shown.

    `group_key` names what the event is about: events of another subject do not replace its payload.
    `is_push` says that it makes earlier runs of the group outdated, which end unless the automation
    queues them, or gives later events to the replica of an earlier one.

    An event above the quota of waiting runs is recorded as skipped.
    """
    at = moment_text(now)
    quiet = timedelta(seconds=automation["debounce_seconds"] or 0)
    awaiting = needs_approval(connection, automation, occasion)
    alone = awaiting or not quiet
    waiting = None if alone else pending_for(connection, automation["id"], group_key)
    if is_push and automation["on_new_event"] == "cancel" and not occasion.joins:
        # First, because their room is enough for the new run; and they are outdated in any case.
        newest = None if waiting is None else str(waiting["id"])
        supersede(connection, waiting_runs, automation, group_key, at, but=newest)
    if waiting is not None:
        latest = stored_moment(waiting["triggered_at"]) + longest_burst(automation)
        due = moment_text(min(now + quiet, latest))
        replace_occasion(connection, waiting["id"], due, occasion.event, trigger_json(occasion))
        return False
    if not waiting_runs.has_room(owner_of(automation), awaiting=awaiting):
        add_skip(connection, automation["id"], SkipReason.QUOTA, at, at, 1)
        return False
    due = moment_text(now + min(quiet, longest_burst(automation)))
    begin_run(connection, automation, occasion, at, due_at=due, group_key=group_key)
    waiting_runs.add(owner_of(automation), 1, awaiting=awaiting)
    return True


def longest_burst(automation: Row) -> timedelta:
    """Return after how long a continuing burst of events starts its run anyway."""
    most = automation["debounce_max_seconds"]
    if most is None:
        most = (automation["debounce_seconds"] or 0) * DEBOUNCE_TIMES
    return timedelta(seconds=most)


def too_large() -> ApiError:
    """Return the error for a payload over the limit."""
    return ApiError(
        ErrorCode.PAYLOAD_TOO_LARGE, "The payload is too large.", f"at most {PAYLOAD_BYTES} bytes"
    )


async def _launched(launcher: RunLauncher, execution_id: str) -> str | None:
    """Start a run now; None while the limit is reached or its service is unreachable."""
    try:
        started = await launcher.launch(execution_id)
    except ApiError as e:
        if e.code not in (ErrorCode.WORKSPACE_LIMIT_REACHED, ErrorCode.ENGINE_UNREACHABLE):
            raise
        return None
    # The runner may have started it first.
    return started or await _workspace_of(launcher.context, execution_id)


async def _workspace_of(context: ServiceContext, execution_id: str) -> str | None:
    row = await context.database.read(lambda c: find_execution(c, execution_id))
    return None if row is None else row["workspace_id"]


def _payload_of(body: bytes) -> Any:
    """Return JSON as it is; anything else as `{"raw": text}`."""
    try:
        return read_payload(body)
    except ValueError:
        return {"raw": body.decode(errors="replace")}


log = logging.getLogger(__name__)

_READERS: dict[str, Callable[[str, object], HostEvent | None]] = {
    HOST_A: read_host_a,
    HOST_B: read_host_b,
}


async def take_host_webhook(
    context: ServiceContext,
    apis: HostApis,
    checks: CheckSender,
    host: str,
    kind: str,
    body: bytes,
    delivery_id: str | None = None,
) -> None:
    """Start the runs of an authentic webhook. One that is not understood starts none.

    The receipt and the runs are stored in one transaction: an answered webhook is done, an
    unanswered one can be sent again, and nothing is done twice.

    `delivery_id` is the sender's own id of it, if the signature covers that: a repeated id means
    the same webhook, whatever its body. Without an id the body is compared.

    Raises:
        ApiError: INVALID_REQUEST when it is not JSON, CONFLICT when it was accepted before.
    """
    try:
        payload = read_payload(body)
    except ValueError as e:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A webhook's body is JSON.", str(e)) from e
    changed = _repository_of(payload)
    if changed is not None:  # also by events that no automation uses, such as the end of a check
        apis.expire(host, changed)
    event = _understood(host, kind, payload)
    digest = _digest(host, body, delivery_id)
    if await context.database.read(lambda c: has_receipt(c, digest)):  # before its host is asked
        raise _received_before()
    if event is not None:
        event = await _with_head(context, checks, host, event)
    now = context.clock()

    def run(connection: Connection) -> int:
        add_receipt(connection, digest, moment_text(now))
        matched = [] if event is None else matches(connection, host, event)
        waiting_runs = WaitingRuns(connection)
        for match in matched:
            assert event is not None  # something matched it
            about = event.pull_request
            occasion = TriggerEvent(
                host,
                event.name,
                moment_text(now),
                payload,
                about,
                match.joins,
                match.repository_ids,
                event.trusted,
                event.author,
            )
            group = f"{host} {event.repository}#{about.number}"
            automation = match.automation
            try:
                with connection.begin_nested():
                    take_event(
                        connection,
                        waiting_runs,
                        automation,
                        occasion,
                        now,
                        group,
                        is_push=event.is_push,
                    )
            except DamagedRecordError as e:  # the others get the event all the same
                waiting_runs.forget(owner_of(automation))
                log.error(
                    "Automation %s did not get an event: %s", automation["id"], e.for_operator()
                )
        return len(matched)

    try:
        count = await context.database.write(run)
    except IntegrityError as e:
        raise _received_before() from e
    if event is not None:
        where = f"{event.repository}#{event.pull_request.number}"
        log.info("%s of %s at %s matched %d automations", event.name, where, host, count)


def _received_before() -> ApiError:
    return ApiError(ErrorCode.CONFLICT, "This webhook was received before.")


async def _with_head(
    context: ServiceContext, checks: CheckSender, host: str, event: HostEvent
) -> HostEvent:
    """Return an event with the head of its pull request, where an approval depends on it.

    Events of comments do not name the commit at host A. An approval is for the commit at the time
    of the event, so the host is asked now: later it may have another one.
    """
    about = event.pull_request
    if event.trusted or about.head_sha is not None or not context.hosts.of(host).writable:
        return event
    if not await context.database.read(lambda c: matches(c, host, event)):
        return event
    try:
        head = await checks.head_of(host, event.repository, about.number)
    except HostError as e:
        log.warning("The head of %s#%d is not known: %s", event.repository, about.number, e)
        return event
    missing = {name: text for name, text in head.items() if getattr(about, name) is None}
    return replace(event, pull_request=about.model_copy(update=missing))


def _digest(host: str, body: bytes, delivery_id: str | None) -> str:
    key = b"\n" + body if delivery_id is None else b" id " + delivery_id.encode("latin-1")
    return hashlib.sha256(host.encode() + key).hexdigest()


def _repository_of(payload: object) -> str | None:
    """Return the full name of the repository that a webhook of either host is about."""
    match payload:
        case {"repository": {"full_name": str(name)}}:
            return name
        case {"project": {"path_with_namespace": str(name)}}:
            return name
        case _:
            return None


def _understood(host: str, kind: str, payload: object) -> HostEvent | None:
    try:
        return _READERS[host](kind, payload)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}"
        log.warning("A webhook %.60r of %s is not understood: %s", kind, host, reason)
        return None

"""`qd automation run`, `runs`, `retry`, `approve` and `cancel`: runs of an automation."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from quarterdeck.cli.automation.automations import (
    check_text,
    duration,
    local_clock,
    run_state,
    run_trigger_text,
)
from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import automation_argument, find_automation, find_failed_run, find_run
from quarterdeck.cli.options import Common, common_options, read_text
from quarterdeck.cli.output import ago, print_json, print_message, print_table, print_text

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.stream_events import Received
    from quarterdeck.wire.automation_runs import (
        Execution,
        ExecutionList,
        PullRequestRef,
        SkippedMoments,
    )


@dataclass(frozen=True)
class _Run:
    """The run that is followed."""

    automation_id: UUID
    id: UUID


async def _follow_run(client: "Client", run: _Run, common: Common) -> None:
    """Report each state of the run until it has ended.

    Raises:
        FailedError: it failed, or its automation was deleted.
    """
    from quarterdeck.wire.automation_runs import ExecutionStatus

    last = None
    async with aclosing(_states(client, run)) as states:
        async for state in states:
            if state.status == last:
                continue
            last = state.status
            _print_state(common, state)
            if last == ExecutionStatus.FAILED:
                raise FailedError(
                    state.error or "The run failed.", "Run it again with qd automation retry."
                )
            if last == ExecutionStatus.COMPLETED:
                return


def _print_state(common: Common, state: "Execution") -> None:
    from quarterdeck.wire.automation_runs import ExecutionStatus

    if common.json:
        # An event has fewer fields than the record: missing ones are not printed as empty.
        print_json({"execution": state.model_dump(mode="json", exclude_unset=True)})
    elif state.awaiting_approval:
        print_message("The run waits for approval: qd automation approve.")
    else:
        failed = state.status == ExecutionStatus.FAILED
        print_message("The run has failed." if failed else f"The run is {state.status}.")


async def _states(client: "Client", run: _Run) -> "AsyncGenerator[Execution]":
    """Yield the run when the stream is open, and after each of its changes."""
    from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Received

    async with client.changes.stream() as stream:
        async for item in stream:
            match item:
                case ConnectionRestored(resumed=False):
                    yield await client.automations.execution(run.automation_id, run.id)
                case Received() if _is_about(item, run):
                    yield _state(item)
                case ConnectionLost(error):
                    print_message(f"qd: {error.message} Trying again.")
                case _:
                    pass


def _is_about(item: "Received", run: _Run) -> bool:
    from quarterdeck.wire.events import AutomationEventType

    payload = item.event.payload
    match item.event.type:
        case AutomationEventType.AUTOMATION_DELETED:
            if payload.get("automation_id") == str(run.automation_id):
                raise FailedError("The automation was deleted.")
            return False
        case AutomationEventType.EXECUTION_CHANGED:
            return payload.get("execution", {}).get("id") == str(run.id)
        case _:
            return False


def _state(item: "Received") -> "Execution":
    from quarterdeck.wire.automation_runs import Execution

    return Execution.model_validate(item.event.payload["execution"])


@click.command(name="run")
@click.option("--payload", metavar="JSON|@FILE", help="The payload, as JSON; @- reads stdin.")
@click.option("--pr", metavar="REPO#N", help="The pull request that the run is about.")
@click.option("--follow", is_flag=True, help="Follow the run until it ends.")
@automation_argument
@common_options
def run(common: Common, automation: str, payload: str | None, pr: str | None, follow: bool) -> None:
    """Start a run now, even if the automation is off. Prints the run's id.

    With --follow the exit code is 1 when the run fails; with --json the first line is the answer,
    each state follows as a line.
    """
    from quarterdeck.wire.automation_runs import TriggerAutomation

    body = TriggerAutomation(payload=_read_payload(payload), pr=_read_pull_request(pr))

    async def work(client: "Client") -> None:
        record = await find_automation(client, automation)
        triggered = await client.automations.trigger(record.id, body)
        if common.json:
            print_json(triggered)
        else:
            print_text(str(triggered.execution_id))
            if triggered.workspace_id is None:
                print_message("The run waits: as many runs or replicas are active as are allowed.")
        if follow:
            await _follow_run(client, _Run(record.id, triggered.execution_id), common)

    with_client(common, work)


def _read_payload(given: str | None) -> Any:
    if given is None:
        return None
    text = read_text(given[1:]) if given.startswith("@") else given
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        raise UsageError(
            f"The payload is not valid JSON: {e}.", "Quote a text as JSON does."
        ) from e


def _read_pull_request(given: str | None) -> "PullRequestRef | None":
    from quarterdeck.wire.automation_runs import PullRequestRef

    if given is None:
        return None
    repository, _, number = given.rpartition("#")
    if not repository or not (number.isascii() and number.isdecimal()):
        raise UsageError(f"{given!r} is not a pull request.", "Write REPO#N, such as shop#12.")
    return PullRequestRef(repository=repository, number=int(number))


Named = dict[UUID, str]
_SKIPPED = {
    "missed": "the service was not running",
    "running": "the previous run had not ended",
    "concurrency": "a run of the schedule already waited for its turn",
    "quota": "too many runs waited",
}


@click.command(name="runs")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="Show at most N, newest first.",
)
@automation_argument
@common_options
def runs(common: Common, automation: str, limit: int) -> None:
    """List the runs of an automation, newest first, with the verdicts of their checks.

    Skipped scheduled runs are listed too, with the reason.
    """

    async def read(client: "Client") -> "tuple[ExecutionList, Named]":
        record = await find_automation(client, automation)
        page = await client.automations.executions(record.id, limit=limit)
        used = {execution.workspace_id for execution in page.executions if execution.workspace_id}
        return page, await _names(client, used)

    page, names = with_client(common, read)
    if common.json:
        plain = [_json(execution, names) for execution in page.executions]
        print_json({"executions": plain, "skipped": page.skipped})
    elif not page.executions and not page.skipped:
        print_message("No runs yet.")
    else:
        rows = [(execution.triggered_at, _row(execution, names)) for execution in page.executions]
        rows += [(moment.last_at, _skipped_row(moment)) for moment in page.skipped]
        header = ["STATUS", "TRIGGER", "BEGAN", "TOOK", "REPLICA", "CHECK", "ID", "WHY"]
        print_table(header, (row for _, row in sorted(rows, key=lambda row: row[0], reverse=True)))


async def _names(client: "Client", wanted: set[UUID]) -> Named:
    """Return the names of replicas; deleted ones have none."""
    names: Named = {}
    async for replica in client.replicas.all():
        if len(names) == len(wanted):
            break
        if replica.id in wanted:
            names[replica.id] = replica.name
    return names


def _name(run: "Execution", names: Named) -> str | None:
    return names.get(run.workspace_id) if run.workspace_id else None


def _json(run: "Execution", names: Named) -> dict[str, object]:
    return {**run.model_dump(mode="json"), "workspace_name": _name(run, names)}


def _row(run: "Execution", names: Named) -> list[str]:
    from quarterdeck.wire.base import utc_now

    return [
        run_state(run),
        run_trigger_text(run),
        f"{ago(run.triggered_at)} ago",
        duration((run.completed_at or utc_now()) - run.triggered_at),
        _name(run, names) or ("gone" if run.workspace_id else "-"),
        check_text(run),
        str(run.id)[:8],
        run.error or (run.check.title if run.check else None) or _published(run),
    ]


def _skipped_row(skipped: "SkippedMoments") -> list[str]:
    why = _SKIPPED.get(skipped.reason, skipped.reason)
    count = (
        f"{skipped.count} moments since {local_clock(skipped.first_at)}: "
        if skipped.count > 1
        else ""
    )
    return ["skipped", "cron", f"{ago(skipped.last_at)} ago", "-", "-", "-", "-", count + why]


def _published(run: "Execution") -> str:
    """Return the result of publishing a run's commits, in a few words."""
    return ", ".join(
        branch.error or branch.url or f"pushed {branch.branch}" for branch in run.published
    )


@click.command(name="retry")
@click.option("--follow", is_flag=True, help="Follow the run until it ends.")
@automation_argument
@click.argument("run", metavar="[RUN]", required=False)
@common_options
def retry(common: Common, automation: str, run: str | None, follow: bool) -> None:
    """Run a failed run again, in a new replica: RUN, or the newest that failed.

    It uses the automation's current settings. Prints the new run's id.
    """

    async def work(client: "Client") -> None:
        record = await find_automation(client, automation)
        failed = (
            await find_run(client, record, run)
            if run is not None
            else await find_failed_run(client, record)
        )
        retried = await client.automations.retry(record.id, failed)
        if common.json:
            print_json(retried)
        else:
            print_text(str(retried.execution_id))
        if follow:
            await _follow_run(client, _Run(record.id, retried.execution_id), common)

    with_client(common, work)


@click.command(name="approve")
@click.option("--follow", is_flag=True, help="Follow the run until it ends.")
@automation_argument
@click.argument("run", metavar="RUN")
@common_options
def approve(common: Common, automation: str, run: str, follow: bool) -> None:
    """Let a run start that waits for approval, with the variables of its environment.

    A run waits when it is for a pull request from a fork whose author is not trusted. It starts at the
    commit that was pushed when it was set off; a later push waits for an approval of its own.
    """

    async def work(client: "Client") -> None:
        record = await find_automation(client, automation)
        approved = await client.automations.approve(record.id, await find_run(client, record, run))
        if common.json:
            print_json({"execution": approved})
        else:
            print_message(f"Approved. The run is {approved.status}.")
        if follow:
            await _follow_run(client, _Run(record.id, approved.id), common)

    with_client(common, work)


@click.command(name="cancel")
@automation_argument
@click.argument("run", metavar="RUN")
@common_options
def cancel(common: Common, automation: str, run: str) -> None:
    """Cancel a running or waiting run. Its replica is kept."""

    async def work(client: "Client") -> "Execution":
        record = await find_automation(client, automation)
        return await client.automations.cancel(record.id, await find_run(client, record, run))

    canceled = with_client(common, work)
    if common.json:
        print_json({"execution": canceled})
    else:
        print_message("The run is canceled.")

"""Automations and their runs."""

from collections.abc import AsyncGenerator
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

from pydantic import RootModel

from quarterdeck.client.connection import Connection
from quarterdeck.client.events import EventCursor, EventStream
from quarterdeck.client.retry import STREAM_PACE, Pace
from quarterdeck.client.stream import ResumingStream
from quarterdeck.wire.automations import (
    Accepted,
    Automation,
    AutomationAnswer,
    AutomationList,
    ChangeAutomation,
    CheckReported,
    CreateAutomation,
    Execution,
    ExecutionAnswer,
    ExecutionList,
    ReportCheck,
    Retried,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.base import Success

PATH = "/v1/automations"
MOST_PER_PAGE = 100
START_SECONDS = 120.0
"""A run that is asked for is answered when its workspace is made."""

Scope = Literal["org", "user", "all"]


class _Payload(RootModel[Any]):
    """What is posted to a webhook: any JSON."""


class Automations:
    """`/v1/automations`."""

    def __init__(self, connection: Connection, pace: Pace = STREAM_PACE) -> None:
        self._connection = connection
        self._pace = pace

    async def list(
        self,
        page: int | None = None,
        limit: int | None = None,
        *,
        trigger_type: str | None = None,
        enabled: bool | None = None,
        search: str | None = None,
        scope: Scope | None = None,
    ) -> AutomationList:
        """One page (counted from 1, 1 to 100 records, by default 20), newest first."""
        query = {
            "page": page,
            "limit": limit,
            "trigger_type": trigger_type,
            "enabled": enabled,
            "search": search,
            "scope": scope,
        }
        return await self._connection.call("GET", PATH, AutomationList, query=query)

    async def all(
        self,
        *,
        trigger_type: str | None = None,
        enabled: bool | None = None,
        search: str | None = None,
        scope: Scope | None = None,
    ) -> AsyncGenerator[Automation]:
        """Every automation once, newest first, page by page."""
        seen: set[UUID] = set()
        page = 1
        while True:
            found = await self.list(
                page,
                MOST_PER_PAGE,
                trigger_type=trigger_type,
                enabled=enabled,
                search=search,
                scope=scope,
            )
            for automation in found.automations:
                if automation.id not in seen:
                    seen.add(automation.id)
                    yield automation
            if page >= found.total_pages or not found.automations:
                return
            page += 1

    async def create(self, automation: CreateAutomation) -> Automation:
        """Makes one. Raises `InvalidRequest` for triggers, an environment or an agent of no use."""
        answer = await self._connection.call("POST", PATH, AutomationAnswer, body=automation)
        return answer.automation

    async def get(self, automation_id: UUID) -> Automation:
        """One automation."""
        answer = await self._connection.call("GET", f"{PATH}/{automation_id}", AutomationAnswer)
        return answer.automation

    async def change(self, automation_id: UUID, change: ChangeAutomation) -> Automation:
        """Changes the fields that were set; null clears one. Raises as `create`."""
        answer = await self._connection.call(
            "PATCH", f"{PATH}/{automation_id}", AutomationAnswer, body=change
        )
        return answer.automation

    async def delete(self, automation_id: UUID) -> None:
        """Removes one with its runs; replicas that these made go on."""
        await self._connection.call("DELETE", f"{PATH}/{automation_id}", Success)

    async def trigger(
        self, automation_id: UUID, trigger: TriggerAutomation | None = None
    ) -> Triggered:
        """Begins a run by hand, also of one that is switched off.

        The workspace is None while the run waits for a place.

        Raises:
            PayloadTooLarge: over 256 KB.
            InvalidRequest: it cannot be started; the run is kept, failed.
        """
        return await self._connection.call(
            "POST",
            f"{PATH}/{automation_id}/trigger",
            Triggered,
            body=trigger or TriggerAutomation(),
            timeout=START_SECONDS,
        )

    async def executions(
        self, automation_id: UUID, page: int | None = None, limit: int | None = None
    ) -> ExecutionList:
        """One page of an automation's runs (by default 20), newest first."""
        query = {"page": page, "limit": limit}
        return await self._connection.call(
            "GET", f"{PATH}/{automation_id}/executions", ExecutionList, query=query
        )

    async def execution(self, automation_id: UUID, execution_id: UUID) -> Execution:
        """One run."""
        answer = await self._connection.call(
            "GET", f"{PATH}/{automation_id}/executions/{execution_id}", ExecutionAnswer
        )
        return answer.execution

    async def retry(self, automation_id: UUID, execution_id: UUID) -> Retried:
        """Runs a failed run again, in a new workspace. Raises `Conflict` when it has not failed."""
        return await self._connection.call(
            "POST",
            f"{PATH}/{automation_id}/executions/{execution_id}/retry",
            Retried,
            timeout=START_SECONDS,
        )

    async def webhook(self, token: str, payload: Any = None) -> None:
        """Calls an automation's own webhook, without a key.

        Raises:
            NotFound: the token starts nothing.
            PayloadTooLarge: over 256 KB.
        """
        await self._connection.call(
            "POST",
            f"{PATH}/webhook/{quote(token, safe='')}",
            Accepted,
            body=_Payload(payload),
            keyless=True,
        )

    def events(self, after: int | None = None) -> EventStream:
        """What changes in automations and runs: after an index, then live; without one, live only.

        Yields as the stream of a replica does, and a `Restored` at its first connection too: who
        reads the automations then, misses nothing. Types are those of `AutomationEventType`.
        """
        return ResumingStream(
            self._connection, f"{PATH}/events", EventCursor(after), self._pace, announced=True
        )

    async def report_check(self, check_run_id: str, report: ReportCheck) -> CheckReported:
        """From within a workspace, with its engine's secret: the verdict of a run's check.

        `reported` is false when a later run has superseded this one. Safe to do again.

        Raises:
            Forbidden: the token is wrong, or the check another workspace's.
            NotFound: there is no such check.
        """
        return await self._connection.call(
            "POST",
            f"{PATH}/checks/{quote(check_run_id, safe='')}",
            CheckReported,
            body=report,
            repeatable=True,
        )

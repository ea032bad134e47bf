"""Automations and their runs."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Literal
from uuid import UUID

from pydantic import RootModel

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.paging import every_record
from quarterdeck.client.paths import segment
from quarterdeck.wire.automation_runs import (
    Accepted,
    CheckReported,
    Execution,
    ExecutionAnswer,
    ExecutionList,
    ReportCheck,
    Retried,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.automations import (
    SIGNATURE_HEADER,
    Automation,
    AutomationAnswer,
    AutomationList,
    ChangeAutomation,
    CreateAutomation,
)
from quarterdeck.wire.base import Success

PATH = "/v1/automations"
MOST_PER_PAGE = 100
START_SECONDS = 120.0
"""Starting a run is answered when its workspace has been created."""

Scope = Literal["org", "user", "all"]


class _Payload(RootModel[Any]):
    """The body of a webhook call: any JSON."""


def _signature(secret: str, body: bytes) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256)
    return {SIGNATURE_HEADER: f"sha256={digest.hexdigest()}"}


class AutomationsApi:
    """`/v1/automations`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

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
        """Return one page (counted from 1, 1 to 100 records, by default 20), newest first."""
        query = {
            "page": page,
            "limit": limit,
            "trigger_type": trigger_type,
            "enabled": enabled,
            "search": search,
            "scope": scope,
        }
        return await self._connection.call("GET", PATH, AutomationList, query=query)

    def all(
        self,
        *,
        trigger_type: str | None = None,
        enabled: bool | None = None,
        search: str | None = None,
        scope: Scope | None = None,
    ) -> AsyncGenerator[Automation]:
        """Yield every automation once, newest first, page by page."""

        async def read(page: int) -> tuple[Sequence[Automation], int]:
            answer = await self.list(
                page,
                MOST_PER_PAGE,
                trigger_type=trigger_type,
                enabled=enabled,
                search=search,
                scope=scope,
            )
            return answer.automations, answer.total_pages

        return every_record(read)

    async def create(self, automation: CreateAutomation) -> Automation:
        """Create one. Raises `InvalidRequestError` for unusable triggers, environment or agent."""
        answer = await self._connection.call("POST", PATH, AutomationAnswer, body=automation)
        return answer.automation

    async def get(self, automation_id: UUID) -> Automation:
        """Return one automation."""
        return (await self.get_tagged(automation_id)).automation

    async def get_tagged(self, automation_id: UUID) -> AutomationAnswer:
        """Return the same with its entity tag, for `change`."""
        return await self._connection.call("GET", f"{PATH}/{automation_id}", AutomationAnswer)

    async def change(
        self, automation_id: UUID, change: ChangeAutomation, if_match: str | None = None
    ) -> Automation:
        """Change the fields that were set; null clears one. Raises as `create`.

        Raises:
            PreconditionFailedError: its entity tag is not `if_match` any more.
        """
        answer = await self._connection.call(
            "PATCH", f"{PATH}/{automation_id}", AutomationAnswer, body=change, if_match=if_match
        )
        return answer.automation

    async def delete(self, automation_id: UUID) -> None:
        """Delete one with its runs; the replicas of its runs continue."""
        await self._connection.call("DELETE", f"{PATH}/{automation_id}", Success)

    async def trigger(
        self, automation_id: UUID, trigger: TriggerAutomation | None = None
    ) -> Triggered:
        """Start a run by hand, also of one that is switched off.

        The workspace is None while the run waits for a place.

        Raises:
            PayloadTooLargeError: over 256 KB.
            InvalidRequestError: it cannot be started; the run is kept as failed.
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
        """Return one page of an automation's runs (by default 20), newest first."""
        query = {"page": page, "limit": limit}
        return await self._connection.call(
            "GET", f"{PATH}/{automation_id}/executions", ExecutionList, query=query
        )

    async def execution(self, automation_id: UUID, execution_id: UUID) -> Execution:
        """Return one run."""
        answer = await self._connection.call(
            "GET", f"{PATH}/{automation_id}/executions/{execution_id}", ExecutionAnswer
        )
        return answer.execution

    async def retry(self, automation_id: UUID, execution_id: UUID) -> Retried:
        """Run a failed run again, in a new workspace. Raises `ConflictError` when it has not failed."""
        return await self._connection.call(
            "POST",
            f"{PATH}/{automation_id}/executions/{execution_id}/retry",
            Retried,
            timeout=START_SECONDS,
        )

    async def approve(self, automation_id: UUID, execution_id: UUID) -> Execution:
        """Approve a run that waits for approval. Raises `ConflictError` when it does not."""
        answer = await self._connection.call(
            "POST",
            f"{PATH}/{automation_id}/executions/{execution_id}/approve",
            ExecutionAnswer,
            timeout=START_SECONDS,
        )
        return answer.execution

    async def cancel(self, automation_id: UUID, execution_id: UUID) -> Execution:
        """End a run and stop its agent. Raises `ConflictError` when it has ended."""
        answer = await self._connection.call(
            "POST", f"{PATH}/{automation_id}/executions/{execution_id}/cancel", ExecutionAnswer
        )
        return answer.execution

    async def rotate_webhook(self, automation_id: UUID) -> Automation:
        """Give an automation's webhook a new token. Raises `ConflictError` when it has no webhook."""
        answer = await self._connection.call(
            "POST", f"{PATH}/{automation_id}/webhook/rotate", AutomationAnswer
        )
        return answer.automation

    async def webhook(self, token: str, payload: Any = None, *, secret: str | None = None) -> None:
        """Call an automation's own webhook, without a key, signed if it has a secret.

        Raises:
            NotFoundError: the token is unknown, or the signature is missing or wrong.
            PayloadTooLargeError: over 256 KB.
        """
        await self._connection.call(
            "POST",
            f"{PATH}/webhook/{segment(token)}",
            Accepted,
            body=_Payload(payload),
            keyless=True,
            sign=partial(_signature, secret) if secret else None,
        )

    async def report_check(self, check_run_id: str, report: ReportCheck) -> CheckReported:
        """Report the verdict of a run's check from within a workspace, with its engine's secret.

        `reported` is false when a later run has superseded this one. Safe to repeat.

        Raises:
            ForbiddenError: the token is wrong, or the check is another workspace's.
            NotFoundError: there is no such check.
        """
        return await self._connection.call(
            "POST",
            f"{PATH}/checks/{segment(check_run_id)}",
            CheckReported,
            body=report,
            repeatable=True,
        )

"""The owner of everything that the service says by itself."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, cast

from fastapi import Depends, Request

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.outward.notifier import Notifier
from quarterdeck.service.outward.sender import SenderSettings, WebhookSender
from quarterdeck.service.outward.webhooks import TOLD
from quarterdeck.service.records.events import StoredEvent


class Outward:
    """Webhooks and notifications of one service; started and closed with the application."""

    def __init__(self, context: ServiceContext, settings: SenderSettings | None = None) -> None:
        self.notifier = Notifier(context)
        self._webhooks = WebhookSender(context, settings)
        self._tasks: list[asyncio.Task[None]] = []
        context.event_log.observe(self._hear)
        context.webhooks_stored = self._webhooks.nudge

    def start(self) -> None:
        """Begins to send, first what an earlier service left."""
        for work in (self._webhooks.run(), self.notifier.run()):
            self._tasks.append(asyncio.create_task(work))

    async def close(self) -> None:
        """Stops sending; calls of webhooks are kept."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        if any(event.type in TOLD for event in stored):
            self._webhooks.nudge()
        self.notifier.hear(workspace_id, stored)


def _outward(request: Request) -> Outward:
    return cast("Outward", request.app.state.outward)


OutwardDep = Annotated[Outward, Depends(_outward)]
"""Annotation of a route's parameter that takes the owner."""

"""Waiting for what a replica does: until it is active, until a turn is over."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.output import say
from quarterdeck.wire.events import (
    EngineStatusChanged,
    Event,
    TurnCompleted,
    TurnDelta,
    payload_of,
)
from quarterdeck.wire.history import AgentEvent, AgentEventType
from quarterdeck.wire.replicas import ReplicaDetail, WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.items import Received

FIRST_POLL, LONGEST_POLL = 0.1, 1.0
PAGE = 200
"""Events of history that are looked through after a gap."""


@dataclass(frozen=True)
class Following:
    """What to follow: a chat from a place in the log; one turn of it, or the first that ends."""

    replica_id: UUID
    chat_id: UUID
    message_id: UUID | None
    after: int | None

    def is_mine(self, chat_id: str, message_id: str | None) -> bool:
        if chat_id != str(self.chat_id):
            return False
        return self.message_id is None or message_id == str(self.message_id)


async def until_active(client: "Client", replica_id: UUID) -> ReplicaDetail:
    """Waits for the end of `preparing`.

    Raises:
        NotDone: it failed, or was put to sleep meanwhile; the reason is in the message.
    """
    pause = FIRST_POLL
    while True:
        detail = await client.replicas.get(replica_id)
        if detail.status == WorkspaceStatus.ACTIVE:
            return detail
        if detail.status != WorkspaceStatus.PREPARING:
            raise _not_active(detail.status, detail.error)
        await asyncio.sleep(pause)
        pause = min(LONGEST_POLL, pause * 1.5)


async def received(
    client: "Client", replica_id: UUID, after: int | None
) -> AsyncGenerator["Received | None"]:
    """The replica's events; None where some may be missing. Tells of a lost line on stderr."""
    from quarterdeck.client.items import Lost, Malformed, Received, Restored

    is_lost = False
    async with client.events.stream(replica_id, after) as stream:
        async for item in stream:
            match item:
                case Received():
                    yield item
                case Malformed(error):
                    say(f"qd: {error.message} {error.next_step}")
                case Lost(error) if not is_lost:
                    is_lost = True
                    say(f"qd: {error.message} Trying again.")
                case Restored(resumed):
                    is_lost = False
                    say("qd: The line is up again.")
                    if not resumed:
                        yield None
                case _:
                    pass


async def follow_turn(
    client: "Client", following: Following, show: Callable[["Received"], None]
) -> None:
    """Shows every event until the turn is over.

    Raises:
        NotDone: the turn failed or was interrupted, or the replica failed before it.
    """
    if following.after is None:
        await _check_history(client, following)
    events = received(client, following.replica_id, following.after)
    try:
        async for item in events:
            if item is None:
                if await _check_history(client, following):
                    return
                continue
            show(item)
            if _is_end(item.event, following):
                return
    finally:
        await events.aclose()


def _is_end(event: Event, following: Following) -> bool:
    match payload_of(event):
        case TurnDelta(chat_id=chat_id, message_id=message_id, event=inner):
            if following.is_mine(chat_id, message_id):
                _judge(inner)
        case TurnCompleted(chat_id=chat_id, message_id=message_id, is_complete=is_complete):
            if following.is_mine(chat_id, message_id):
                if not is_complete:
                    raise NotDone("The turn did not complete.")
                return True
        case EngineStatusChanged(workspace_status=str() as status, error=error):
            if status in {WorkspaceStatus.ERROR, WorkspaceStatus.ARCHIVED}:
                raise _not_active(status, error)
        case _:
            pass
    return False


def _judge(event: AgentEvent) -> bool:
    """Whether this is the result of a turn; a bad one is raised."""
    if event.type != AgentEventType.TURN_RESULT:
        return False
    reason = event.payload.get("stopReason")
    if reason == "cancelled":
        raise NotDone("The turn was interrupted.")
    if reason in {"failed", "refusal"}:
        raise NotDone(str(event.payload.get("error") or "The turn failed."))
    return True


async def _check_history(client: "Client", following: Following) -> bool:
    """Looks for the end of the turn where the stream may have missed it."""
    page = await client.history.page(following.replica_id, chat_id=following.chat_id, limit=PAGE)
    return any(
        _judge(event)
        for event in page.events
        if following.is_mine(str(following.chat_id), event.payload.get("messageId"))
    )


def _not_active(status: str, reason: str | None) -> NotDone:
    if status == WorkspaceStatus.ERROR:
        return NotDone(
            f"The replica failed: {reason or 'no reason was given.'}",
            "qd replica wake tries again.",
        )
    return NotDone(f"The replica is {status}.", "qd replica wake starts it.")

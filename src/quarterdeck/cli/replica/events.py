"""`qd replica watch` and `history`; follow the events of a replica."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.lookup import find_chat, with_replica
from quarterdeck.cli.options import Common, chat_option, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_message, print_safe
from quarterdeck.wire.events import EngineStatusChanged, Event, TurnCompleted, TurnDelta, payload_of
from quarterdeck.wire.history import AgentEvent, AgentEventType
from quarterdeck.wire.replicas import ReplicaDetail, WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.cli.replica.printer import TranscriptPrinter
    from quarterdeck.client import Client
    from quarterdeck.client.stream_events import Received
    from quarterdeck.wire.history import History


FIRST_POLL, LONGEST_POLL = 0.1, 1.0
PAGE = 200
"""Events of history that are searched after a gap."""


@dataclass(frozen=True)
class TurnFilter:
    """A chat from an index of the log; one turn of it, or the first that ends."""

    replica_id: UUID
    chat_id: UUID
    message_id: UUID | None
    after: int | None
    forked: bool = False
    """Whether a history was copied to the chat, which begins its log."""

    def is_mine(self, chat_id: str, message_id: str | None) -> bool:
        if chat_id != str(self.chat_id):
            return False
        return self.message_id is None or message_id == str(self.message_id)


async def wait_until_active(client: "Client", replica_id: UUID) -> ReplicaDetail:
    """Wait for the end of `preparing`.

    Raises:
        FailedError: it failed, or was put to sleep meanwhile; the message has the reason.
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


async def _received(
    client: "Client", replica_id: UUID, after: int | None
) -> AsyncGenerator["Received | None"]:
    """Yield the replica's events; None where some may be missing. Reports lost connections on stderr."""
    from quarterdeck.client.stream_events import (
        ConnectionLost,
        ConnectionRestored,
        Malformed,
        Received,
    )

    is_lost = False
    async with client.events.stream(replica_id, after) as stream:
        async for item in stream:
            match item:
                case Received():
                    yield item
                case Malformed(error):
                    print_message(f"qd: {error.message} {error.next_step}")
                case ConnectionLost(error) if not is_lost:
                    is_lost = True
                    print_message(f"qd: {error.message} Trying again.")
                case ConnectionRestored(resumed):
                    is_lost = False
                    print_message("qd: The line is up again.")
                    if not resumed:
                        yield None
                case _:
                    pass


async def follow_turn(
    client: "Client", following: TurnFilter, show: Callable[["Received"], None]
) -> None:
    """Show every event until the turn is over.

    Raises:
        FailedError: the turn failed or was interrupted, or the replica failed before it.
    """
    if following.after is None:
        await _check_history(client, following)
    events = _received(client, following.replica_id, following.after)
    copied = following.forked
    try:
        async for item in events:
            if item is None:
                if await _check_history(client, following):
                    return
                continue
            payload = payload_of(item.event)
            if copied and isinstance(payload, TurnDelta):
                continue
            if isinstance(payload, EngineStatusChanged):
                copied = copied and payload.workspace_status != WorkspaceStatus.ACTIVE
            show(item)
            if _is_end(item.event, following):
                return
    finally:
        await events.aclose()


def _is_end(event: Event, following: TurnFilter) -> bool:
    match payload_of(event):
        case TurnDelta(chat_id=chat_id, message_id=message_id, event=inner):
            if following.is_mine(chat_id, message_id):
                _check_result(inner)
        case TurnCompleted(chat_id=chat_id, message_id=message_id, is_complete=is_complete):
            if following.is_mine(chat_id, message_id):
                if not is_complete:
                    raise FailedError("The turn did not complete.")
                return True
        case EngineStatusChanged(workspace_status=str() as status, error=error):
            if status in {WorkspaceStatus.ERROR, WorkspaceStatus.ARCHIVED}:
                raise _not_active(status, error)
        case _:
            pass
    return False


def _check_result(event: AgentEvent) -> bool:
    """Return whether this is the result of a turn; raise for a failure."""
    if event.type != AgentEventType.TURN_RESULT:
        return False
    reason = event.payload.get("stopReason")
    if reason == "cancelled":
        raise FailedError("The turn was interrupted.")
    if reason in {"failed", "refusal"}:
        raise FailedError(str(event.payload.get("error") or "The turn failed."))
    return True


async def _check_history(client: "Client", following: TurnFilter) -> bool:
    """Find the end of the turn when the stream may have missed it."""
    page = await client.history.page(following.replica_id, chat_id=following.chat_id, limit=PAGE)
    events = page.events
    if following.forked:
        forks = [number for number, event in enumerate(events) if _is_fork(event)]
        events = events[forks[-1] :] if forks else events
    return any(
        _check_result(event)
        for event in events
        if following.is_mine(str(following.chat_id), event.payload.get("messageId"))
    )


def _is_fork(event: AgentEvent) -> bool:
    operation = event.payload.get("operation")
    return event.type == AgentEventType.GIT_OPERATION and operation == "fork"


def _not_active(status: str, reason: str | None) -> FailedError:
    if status == WorkspaceStatus.ERROR:
        return FailedError(
            f"The replica failed: {reason or 'no reason was given.'}",
            "qd replica wake tries again.",
        )
    return FailedError(f"The replica is {status}.", "qd replica wake starts it.")


def _print_event(item: "Received") -> None:
    """Print one line of JSON: the envelope with `index`, its position in the replica's log."""
    print_json({"index": item.index, **item.event.model_dump(mode="json")})


@contextmanager
def _transcript_printer(chat_id: UUID) -> "Generator[TranscriptPrinter]":
    """Yield a printer to stdout whose last line is ended with the block."""
    from quarterdeck.cli.replica.printer import TranscriptPrinter

    printer = TranscriptPrinter(chat_id, lambda text: print_safe(text, end=""))
    try:
        yield printer
    finally:
        printer.finish()


@contextmanager
def event_printer(common: Common, chat_id: UUID) -> "Generator[Callable[[Received], None]]":
    """Yield a function that prints events, with `--json` as JSON."""
    if common.json:
        yield _print_event
        return
    with _transcript_printer(chat_id) as printer:
        yield lambda item: printer.take(item.event)


@click.command(name="watch")
@chat_option
@click.option(
    "--last",
    metavar="N",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    help="Start with the last N events of the chat.",
)
@click.option("--once", is_flag=True, help="Print the present transcript and exit.")
@click.option(
    "--after",
    metavar="INDEX",
    type=click.IntRange(0),
    help="With --json: start after this index of the log; 0 is everything.",
)
@replica_argument
@common_options
def watch(
    common: Common, replica: str, chat: str | None, last: int, once: bool, after: int | None
) -> None:
    """Print the transcript of a chat and follow it until Ctrl+C.

    With --json every event of the replica is a line: its envelope and `index`, its place in the
    log; without --after only what is new.
    """

    async def watch(client: "Client", replica_id: UUID) -> None:
        if common.json:
            await _watch_events(client, replica_id, after, once)
        else:
            await _watch_chat(client, replica_id, chat, last, once)

    with_replica(common, replica, watch)


async def _watch_events(client: "Client", replica_id: UUID, after: int | None, once: bool) -> None:
    newest = (await client.replicas.get(replica_id)).log_index
    start = newest if after is None else after
    if once and (newest is None or start is None or start >= newest):
        return
    events = _received(client, replica_id, start)
    try:
        async for item in events:
            if item is None:
                continue
            _print_event(item)
            if once and item.index is not None and newest is not None and item.index >= newest:
                return
    finally:
        await events.aclose()


async def _watch_chat(
    client: "Client", replica_id: UUID, wanted: str | None, last: int, once: bool
) -> None:
    detail = await client.replicas.get(replica_id)
    chat = find_chat(detail, wanted)
    with _transcript_printer(chat.id) as printer:
        after = detail.log_index
        if last:
            page = await client.history.page(replica_id, chat_id=chat.id, limit=last)
            printer.take_page(page.events)
            after = page.log_index if page.log_index is not None else after
        if once:
            return
        events = _received(client, replica_id, after)
        try:
            async for item in events:
                if item is None:
                    print_message("qd: Some of the transcript may be missing here.")
                    continue
                _print_status(item.event)
                printer.take(item.event)
        finally:
            await events.aclose()


def _print_status(event: Event) -> None:
    match payload_of(event):
        case EngineStatusChanged(workspace_status=str() as status, error=error):
            print_message(f"qd: The replica is {status}{f': {error}' if error else ''}.")
        case _:
            pass


@click.command(name="history")
@chat_option
@click.option("--limit", metavar="N", type=click.IntRange(1), help="The last N events only.")
@click.option(
    "--before", metavar="INDEX", type=click.IntRange(0), help="Events before this index only."
)
@replica_argument
@common_options
def history(
    common: Common, replica: str, chat: str | None, limit: int | None, before: int | None
) -> None:
    """Print a chat's transcript; never wakes the replica.

    With --json it prints the service's page, of the whole replica without --chat;
    `eventsStartIndex` is the --before of the page before.
    """

    async def work(client: "Client", replica_id: UUID) -> "tuple[UUID, History]":
        if common.json and chat is None:
            return replica_id, await client.history.page(
                replica_id, limit=limit, before_event=before
            )
        thread = find_chat(await client.replicas.get(replica_id), chat)
        return thread.id, await client.history.page(
            replica_id, chat_id=thread.id, limit=limit, before_event=before
        )

    thread, page = with_replica(common, replica, work)
    if common.json:
        print_json(page)
        return
    with _transcript_printer(thread) as printer:
        printer.take_page(page.events)

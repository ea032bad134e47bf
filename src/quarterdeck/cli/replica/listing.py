"""`qd replica ls`, `show`, `chats`, `previews` and `hooks`: show replicas."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.clients import run_with
from quarterdeck.cli.lookup import with_replica
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import (
    ago,
    local_time,
    print_json,
    print_message,
    print_table,
    print_text,
    safe_line,
    safe_name,
)
from quarterdeck.cli.target import Target, find_target
from quarterdeck.store.status import WORDS, attention_of
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.git_state import RepositoryStatus
from quarterdeck.wire.replicas import Replica, ReplicaDetail

if TYPE_CHECKING:
    from collections.abc import Callable

    from quarterdeck.client import Client
    from quarterdeck.wire.setup import HookLog


UNREACHABLE = "unreachable"
"""The service that runs the replica does not answer, so its state is unknown."""
STATES = (*WORDS.values(), UNREACHABLE)
WATCH_SECONDS = 0.5
"""Seconds between two requests of `ls --watch`."""


@click.command(name="ls")
@click.option("--status", metavar="STATUS", help="Filter by the service's status.")
@click.option("--state", type=click.Choice(STATES), help="Filter by state.")
@click.option("--watch", is_flag=True, help="Print the list again after each change, until Ctrl+C.")
@common_options
def ls(common: Common, status: str | None, state: str | None, watch: bool) -> None:
    """List replicas with the state that the cockpit shows, newest first.

    A replica is shown as done until the cockpit of this machine has shown its last turn. With
    --json each record is the service's, with `state` added; with --watch too, each list is a line.
    """
    target = find_target(common.profile)

    async def read(client: "Client") -> list[tuple[str, Replica]]:
        # The marks of the cockpit are read again each time: it may be open meanwhile.
        state_of = _state_reader(target)
        every = [replica async for replica in client.replicas.all(status=status)]
        return [(word, record) for record in every if (word := state_of(record)) in {state or word}]

    async def follow(client: "Client") -> None:
        shown = None
        while True:
            listed = await read(client)
            if (states := [(word, record.id) for word, record in listed]) != shown:
                shown = states
                _print_list(common, listed, state)
            await asyncio.sleep(WATCH_SECONDS)

    if watch:
        run_with(target, follow)
    else:
        _print_list(common, run_with(target, read), state)


def _print_list(common: Common, listed: list[tuple[str, Replica]], state: str | None) -> None:
    if common.json:
        records = [{**record.model_dump(mode="json"), "state": word} for word, record in listed]
        print_json({"replicas": records, "total": len(records)})
    elif listed:
        header = ["NAME", "STATE", "ACTIVE", "REPOSITORIES", "ID"]
        print_table(header, [_row(*pair) for pair in listed])
    elif state:
        print_message(f"No replica is {state}.")
    else:
        print_message("No replicas. Create one with: qd replica create.")


def _state_reader(target: Target) -> "Callable[[Replica], str]":
    """Return a function for the state of a replica, using the seen marks of this machine's cockpit."""
    from quarterdeck.store.disk import open_disk

    disk = open_disk(target.home.client, target.label)
    seen, first_opened = disk.seen(), disk.first_opened()

    def state_of(replica: Replica) -> str:
        if replica.unreachable_since is not None:
            return UNREACHABLE
        if replica.working is None or replica.asking is None:
            return replica.status  # a service that does not report the activity of replicas
        seen_at = seen.get(replica.id, first_opened)
        ended_at = replica.last_activity_at if replica.turn_failed is not None else None
        state = attention_of(
            replica.status,
            asks=replica.asking,
            plans=replica.plan_ready,
            works=replica.working,
            unseen=ended_at is not None and (seen_at is None or ended_at > seen_at),
            failed=bool(replica.turn_failed),
        )
        return WORDS[state]

    return state_of


def _row(state: str, replica: Replica) -> list[str]:
    return [
        safe_name(replica.name),
        state,
        ago(replica.last_activity_at or replica.created_at),
        ", ".join(repository.name for repository in replica.repositories) or "-",
        str(replica.id)[:8],
    ]


@click.command(name="chats")
@replica_argument
@common_options
def chats(common: Common, replica: str) -> None:
    """List the chats of a replica, oldest first."""
    threads = with_replica(common, replica, lambda client, id: client.chats.list(id))
    chats = sorted(threads, key=lambda chat: chat.created_at)
    if common.json:
        print_json({"chats": chats})
        return
    print_table(["TITLE", "AGENT", "STATE", "UPDATED", "ID"], map(_chat_row, chats))


def _chat_state(chat: Chat) -> str:
    """Return the activity of a chat, in one word."""
    if chat.awaiting_input:
        return "asking"
    if chat.processing:
        return "working"
    if chat.plan_ready:
        return "plan"
    return "failed" if chat.turn_failed else "idle"


def _chat_row(chat: Chat) -> list[str]:
    return [
        chat.title or "-",
        chat.provider,
        _chat_state(chat),
        ago(chat.updated_at),
        str(chat.id)[:8],
    ]


@click.command(name="show")
@replica_argument
@common_options
def show(common: Common, replica: str) -> None:
    """Show a replica with its chats, repositories and isolation."""

    async def read(client: "Client", replica_id: UUID) -> ReplicaDetail:
        from quarterdeck.client.errors import UnavailableError

        try:
            return await client.replicas.get(replica_id, include=["environment"])
        except UnavailableError:  # without values that only its service knows
            return await client.replicas.get(replica_id)

    detail = with_replica(common, replica, read)
    if common.json:
        print_json({"replica": detail})
        return
    for line in _lines(detail):
        print_text(line)


def _lines(detail: ReplicaDetail) -> Iterator[str]:
    yield f"name        {safe_name(detail.name)}"
    yield f"id          {detail.id}"
    yield f"status      {safe_line(detail.status)}"
    if detail.unreachable_reason:
        yield f"unreachable {safe_line(detail.unreachable_reason)}"
    elif detail.unreachable_since:
        yield f"unreachable its service was last seen {ago(detail.unreachable_since)} ago"
    if detail.error:
        yield f"error       {detail.error}"
    yield f"agent       {safe_line(detail.coding_agent or '-')}"
    yield f"created     {ago(detail.created_at)} ago"
    environment = detail.environment
    if environment is not None and environment.isolation:
        note = f" ({environment.isolation_note})" if environment.isolation_note else ""
        yield f"isolation   {safe_line(environment.isolation + note)}"
    for status in detail.repository_statuses:
        yield f"repository  {safe_line(_repository_text(status))}"
    for chat in sorted(detail.chats, key=lambda chat: chat.created_at):
        yield f"chat        {safe_line(_chat_text(chat))}"


def _repository_text(status: RepositoryStatus) -> str:
    difference = status.git_diff or {}
    changed = f" +{difference.get('added', 0)} -{difference.get('removed', 0)}"
    return f"{status.repository} on {status.branch or '-'}{changed if difference else ''}"


def _chat_text(chat: Chat) -> str:
    title = f" {chat.title}" if chat.title else ""
    return f"{chat.id} {chat.provider} {_chat_state(chat)}{title}"


@click.command(name="previews")
@replica_argument
@common_options
def previews(common: Common, replica: str) -> None:
    """List a replica's previews with their URLs."""
    from quarterdeck.wire.previews import PreviewList

    previews = with_replica(common, replica, lambda client, id: client.previews.list(id))
    if common.json:
        print_json(PreviewList(previews=previews))
        return
    print_table(
        ("PORT", "ADDRESS"), [(str(preview.port), preview.public_url) for preview in previews]
    )


@click.command(name="hooks")
@replica_argument
@common_options
def hooks(common: Common, replica: str) -> None:
    """Show a replica's hook runs with their output."""
    logs = with_replica(common, replica, lambda client, id: client.hook_logs.read(id))
    if common.json:
        print_json(logs)
        return
    every = [*logs.warm_hooks.logs, *logs.start_hooks.logs]
    if not every:
        print_message("No hooks have run.")
    for log in sorted(every, key=lambda hook_log: hook_log.executed_at):
        print_message(
            f"{local_time(log.executed_at)} {log.hook_type} {log.hook_name}: {_hook_result(log)}"
        )
        print_text(log.output, end="" if log.output.endswith("\n") or not log.output else "\n")


def _hook_result(log: "HookLog") -> str:
    how = "timed out" if log.timed_out else f"exit status {log.exit_code}"
    cut = f", the last of {log.output_total_chars} characters" if log.output_truncated else ""
    return how + cut

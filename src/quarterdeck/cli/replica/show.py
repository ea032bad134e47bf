"""`qd replica show`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.cli.words import ago
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.replicas import ReplicaDetail, RepositoryStatus

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="show")
@replica_argument
@common_options
def command(common: Common, replica: str) -> None:
    """Show one replica with its chats, its repositories and how its sandbox is kept apart."""

    async def read(client: "Client") -> ReplicaDetail:
        replica_id = await find_replica(client, replica)
        return await client.replicas.get(replica_id, include=["environment"])

    detail = with_client(common, read)
    if common.json:
        put_json({"replica": detail})
        return
    for line in _lines(detail):
        put(line)


def _lines(detail: ReplicaDetail) -> Iterator[str]:
    yield f"name        {detail.name}"
    yield f"id          {detail.id}"
    yield f"status      {detail.status}"
    if detail.error:
        yield f"error       {detail.error}"
    yield f"agent       {detail.coding_agent or '-'}"
    yield f"made        {ago(detail.created_at)} ago"
    environment = detail.environment
    if environment is not None and environment.isolation:
        note = f" ({environment.isolation_note})" if environment.isolation_note else ""
        yield f"isolation   {environment.isolation}{note}"
    for status in detail.repository_statuses:
        yield f"repository  {_repository(status)}"
    for chat in sorted(detail.chats, key=lambda chat: chat.created_at):
        yield f"chat        {_chat(chat)}"


def _repository(status: RepositoryStatus) -> str:
    difference = status.git_diff or {}
    changed = f" +{difference.get('added', 0)} -{difference.get('removed', 0)}"
    return f"{status.repository} on {status.branch or '-'}{changed if difference else ''}"


def _chat(chat: Chat) -> str:
    state = "asks" if chat.awaiting_input else "working" if chat.processing else "idle"
    title = f" {chat.title}" if chat.title else ""
    return f"{chat.id} {chat.provider} {state}{title}"

"""`qd replica queue`: messages that wait for the running turn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import begins_id, find_chat, find_replica
from quarterdeck.cli.options import Common, chat_option, common_options, replica_argument
from quarterdeck.cli.output import ago, print_json, print_message, print_table, safe_line
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.wire.chats import QueuedMessage, SteerAnswer

if TYPE_CHECKING:
    from quarterdeck.client import Client

VERBS = {
    "ls": Verb(__name__, "List the queue in the order to run.", "list_queue"),
    "rm": Verb(__name__, "Cancel messages that wait.", "remove_queued"),
    "clear": Verb(__name__, "Cancel everything that waits.", "clear_queue"),
    "move": Verb(__name__, "Give a message another place.", "move_queued"),
    "steer": Verb(__name__, "Put a message into the running turn.", "steer_queued"),
    "join": Verb(__name__, "Join messages to one.", "join_queued"),
}


@click.group(name="queue", cls=LazyGroup, verbs=VERBS)
def queue() -> None:
    """Show and edit the queue of a chat, in every state of the replica.

    MESSAGE is a place in the queue, from 1, or an id or a prefix of one of
    at least four characters.
    """


TEXT_WIDTH = 60
SHORTEST_PREFIX = 4
"""A shorter number is a position: one after the end must not be treated as an id."""


@dataclass(frozen=True)
class _Queue:
    """A chat's queue as it was read."""

    replica_id: UUID
    chat_id: UUID
    messages: list[QueuedMessage]

    def find(self, wanted: str) -> QueuedMessage:
        """Return the message at a position, or with an id or a prefix of one.

        Raises:
            FailedError: there is none.
            UsageError: a prefix of several.
        """
        if wanted.isdecimal() and len(wanted) < SHORTEST_PREFIX:
            matches = self.messages[int(wanted) - 1 : int(wanted)] if int(wanted) else []
        elif len(wanted) < SHORTEST_PREFIX:
            matches = []
        else:
            matches = [message for message in self.messages if begins_id(wanted, message.id)]
        if not matches:
            raise FailedError(
                f"No message {wanted!r} waits.", "See them with: qd replica queue ls."
            )
        if len(matches) > 1:
            raise UsageError(f"{wanted!r} fits {len(matches)} messages.", "Give the whole id.")
        return matches[0]


async def _read_queue(client: "Client", replica: str, chat: str | None) -> _Queue:
    """Return the queue of a replica's chat."""
    replica_id = await find_replica(client, replica)
    thread = find_chat(await client.replicas.get(replica_id), chat)
    queue = await client.messages.queue(replica_id, thread.id)
    return _Queue(replica_id, thread.id, queue.queue)


def _print_queue(common: Common, messages: list[QueuedMessage]) -> None:
    """Print a queue."""
    if common.json:
        print_json({"queue": [message.model_dump(mode="json") for message in messages]})
        return
    rows = [
        [str(place), str(message.id)[:8], ago(message.queued_at), _short(message.message)]
        for place, message in enumerate(messages, 1)
    ]
    print_table(["PLACE", "ID", "AGE", "MESSAGE"], rows)


def _short(text: str) -> str:
    line = safe_line(text)
    return line if len(line) <= TEXT_WIDTH else f"{line[: TEXT_WIDTH - 1]}…"


@click.command(name="ls")
@chat_option
@replica_argument
@common_options
def list_queue(common: Common, replica: str, chat: str | None) -> None:
    """List the queue, next message first."""

    async def work(client: "Client") -> list[QueuedMessage]:
        return (await _read_queue(client, replica, chat)).messages

    _print_queue(common, with_client(common, work))


@click.command(name="rm")
@chat_option
@replica_argument
@click.argument("messages", metavar="MESSAGE...", nargs=-1, required=True)
@common_options
def remove_queued(
    common: Common, replica: str, messages: tuple[str, ...], chat: str | None
) -> None:
    """Cancel queued messages and print the queue. A message that has started is refused."""

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await _read_queue(client, replica, chat)
        left = waiting.messages
        for message in dict.fromkeys(waiting.find(queued).id for queued in messages):
            left = await client.messages.remove_queued(waiting.replica_id, waiting.chat_id, message)
        return left

    _print_queue(common, with_client(common, work))


@click.command(name="clear")
@chat_option
@replica_argument
@common_options
def clear_queue(common: Common, replica: str, chat: str | None) -> None:
    """Cancel all queued messages; the running turn continues."""

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await _read_queue(client, replica, chat)
        return await client.messages.clear_queue(waiting.replica_id, waiting.chat_id)

    _print_queue(common, with_client(common, work))


@click.command(name="move")
@chat_option
@replica_argument
@click.argument("message")
@click.argument("place", type=click.IntRange(1))
@common_options
def move_queued(common: Common, replica: str, message: str, place: int, chat: str | None) -> None:
    """Move a message to a position, from 1, and print the queue."""

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await _read_queue(client, replica, chat)
        moved = waiting.find(message).id
        return await client.messages.reorder_queue(
            waiting.replica_id, waiting.chat_id, moved, place - 1
        )

    _print_queue(common, with_client(common, work))


@click.command(name="steer")
@chat_option
@replica_argument
@click.argument("message")
@common_options
def steer_queued(common: Common, replica: str, message: str, chat: str | None) -> None:
    """Put a queued message into the running turn and print the queue.

    The turn of an agent that takes no messages is interrupted, and the message is the next one. It
    is refused when no turn runs or a question is open.
    """

    async def work(client: "Client") -> SteerAnswer:
        waiting = await _read_queue(client, replica, chat)
        steered = waiting.find(message).id
        return await client.messages.steer(waiting.replica_id, waiting.chat_id, steered)

    answer = with_client(common, work)
    if common.json:
        print_json(answer.model_dump(mode="json", include={"interrupted", "queue"}))
        return
    print_message(steered_text(answer))
    _print_queue(common, answer.queue)


@click.command(name="join")
@chat_option
@replica_argument
@click.argument("messages", metavar="[MESSAGE]...", nargs=-1)
@common_options
def join_queued(common: Common, replica: str, messages: tuple[str, ...], chat: str | None) -> None:
    """Join queued messages to one, by default all, and print the queue.

    The texts are separated by a blank line, and it has the first one's place. Messages that differ in
    plan, goal or fast mode are refused.
    """

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await _read_queue(client, replica, chat)
        parts = [waiting.find(message).id for message in messages] or None
        return await client.messages.join(waiting.replica_id, waiting.chat_id, parts)

    _print_queue(common, with_client(common, work))


def steered_text(answer: SteerAnswer) -> str:
    """Return what became of a message that was to go into the running turn."""
    if answer.interrupted:
        return "The turn was interrupted for it, because this agent takes no messages in a turn."
    return "Put into the running turn."

"""Commands on replicas and chats. Every command raises the client's errors."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError, ConflictError, NotFoundError
from quarterdeck.store.event_reducer import PAGE, ReplicaFeed
from quarterdeck.store.replica_list import on_each
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import TranscriptChanged
from quarterdeck.wire.replicas import ForkReplica, ReplicaDetail
from quarterdeck.wire.search import MOST_HITS, SearchHit

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.store.changes_diff import FileChange
    from quarterdeck.wire.git import Checkpoint, Rewound
    from quarterdeck.wire.permissions import ChangePermissions, ReplicaPermissions


READ_SECONDS = 3.0


class Commands:
    """Commands on the replicas of one service."""

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner
        self.deleting: set[UUID] = set()
        """Replicas that this cockpit is deleting, so their deletion is not reported."""

    async def open_chat(self, replica_id: UUID, chat_id: UUID) -> None:
        """Load a chat's newest page, once.

        Raises:
            ClientError: the history could not be read.
        """
        owner = self._owner
        chat = owner.chat(replica_id, chat_id)
        if chat is None or chat.transcript is not None or chat.loading:
            return
        feed = owner.following.feed(replica_id)
        if feed is None:
            feed = ReplicaFeed(owner, owner.replicas[replica_id])
        owner.read_agent_name_soon(chat.record.provider)
        await feed.load(chat)

    async def load_older(self, replica_id: UUID, chat_id: UUID) -> None:
        """Load the page before the oldest one.

        Raises:
            ClientError: the page could not be read.
        """
        chat = self._owner.chat(replica_id, chat_id)
        if chat is None or chat.before_cursor is None or chat.loading:
            return
        cursor = chat.before_cursor
        page = await self._owner.client.history.page(
            replica_id, chat_id=chat_id, limit=PAGE, before_cursor=cursor
        )
        if chat.before_cursor != cursor:
            return
        fold = chat.add_older(page)
        if fold is not None:
            self._owner.publish(TranscriptChanged(replica_id, chat_id, fold))

    async def search(self, words: str) -> list[SearchHit]:
        """Return the newest messages and tool calls of all chats that have all of the words.

        Raises:
            ClientError: refused or unreachable.
        """
        return (await self._owner.client.history.search(words, limit=MOST_HITS)).hits

    async def interrupt(self, replica_id: UUID) -> bool:
        """Stop every running turn of a replica; False when none ran.

        Raises:
            ClientError: refused or unreachable.
        """
        state = self._owner.replicas[replica_id]
        running = [chat.id for chat in state.chats.values() if chat.record.processing]
        client = self._owner.client
        stopped = [(await client.chats.interrupt(replica_id, id)).interrupted for id in running]
        return any(stopped)

    async def respond(
        self,
        replica_id: UUID,
        chat_id: UUID,
        request_id: str,
        *,
        option_id: str | None = None,
        text: str | None = None,
        message: str | None = None,
    ) -> None:
        """Answer a question or permission request of the agent, with an option or a text.

        A `message` for the agent comes before those that wait.

        Raises:
            ClientError: refused, unreachable, or the question is closed (`Conflict`).
        """
        chats = self._owner.client.chats
        await chats.respond(
            replica_id, chat_id, request_id, option_id=option_id, text=text, message=message
        )

    async def permissions(self, replica_id: UUID) -> "ReplicaPermissions":
        """Return which permission requests of a replica are answered without a person.

        Raises:
            ClientError: unreachable.
        """
        return await self._owner.client.permissions.get(replica_id)

    async def change_permissions(
        self, replica_id: UUID, change: "ChangePermissions"
    ) -> "ReplicaPermissions":
        """Change the policy or the rules of a replica.

        Raises:
            ClientError: refused or unreachable.
        """
        return await self._owner.client.permissions.change(replica_id, change)

    async def allow_from_now_on(
        self,
        replica_id: UUID,
        chat_id: UUID,
        request_id: str,
        option_id: str,
        patterns: Sequence[str],
    ) -> None:
        """Add allow rules to a replica, and give a permission request the option if it is still open.

        Raises:
            ClientError: refused or unreachable.
        """
        from quarterdeck.wire.permissions import ChangePermissions, PermissionRule

        rules = [PermissionRule(action="allow", pattern=pattern) for pattern in patterns]
        await self.change_permissions(replica_id, ChangePermissions(add_rules=rules))
        with contextlib.suppress(ConflictError):  # the rules have answered it
            await self.respond(replica_id, chat_id, request_id, option_id=option_id)

    async def sleep(self, replica_id: UUID) -> None:
        """Put a replica to sleep.

        Raises:
            ClientError: refused or unreachable.
        """
        await self._owner.client.replicas.sleep(replica_id)

    async def archive(self, replica_id: UUID) -> None:
        """Pack a replica's files away; its history stays readable, and waking restores it.

        Raises:
            ClientError: refused or unreachable.
        """
        await self._owner.client.replicas.archive(replica_id)

    async def read_resting(self, states: Sequence[ReplicaState]) -> None:
        """Read the records of replicas that no event stream keeps up to date; wake none.

        The state of one that cannot be read within `READ_SECONDS` stays as it is.
        """
        feeds = self._owner.following

        async def read(replica_id: UUID) -> None:
            detail = await self._owner.client.replicas.get(replica_id)
            if (state := self._owner.replicas.get(replica_id)) is not None:
                state.take_detail(detail)

        live = {listed.id for listed in states if (feed := feeds.feed(listed.id)) and feed.live}
        await _on_each_soon([listed for listed in states if listed.id not in live], read)

    async def read_programs(self, states: Sequence[ReplicaState]) -> None:
        """Read what runs in the terminals of replicas that are active.

        Of one that cannot be read within `READ_SECONDS` nothing is known.
        """

        async def read(replica_id: UUID) -> None:
            sessions = await self._owner.client.terminals.list(replica_id)
            if (state := self._owner.replicas.get(replica_id)) is not None:
                state.programs = [one.program for one in sessions if one.program is not None]

        for state in states:
            state.programs = []
        await _on_each_soon([state for state in states if state.active], read)

    async def wake(self, replica_id: UUID) -> None:
        """Wake a replica, or retry a failed one.

        Raises:
            ClientError: refused or unreachable.
        """
        client = self._owner.client
        self._owner.following.follow(self._owner.replicas[replica_id])
        await client.replicas.wake(replica_id)

    async def checkpoints(self, replica_id: UUID) -> "list[Checkpoint]":
        """Return the checkpoints of a replica's files, the newest first.

        Raises:
            ClientError: refused or unreachable.
        """
        return await self._owner.client.git.checkpoints(replica_id)

    async def changes_since(
        self, replica_id: UUID, checkpoint: "Checkpoint"
    ) -> "tuple[list[FileChange], bool] | None":
        """Return the changes since a checkpoint, which a rewind takes back.

        And whether they were too long to be read to their end. None: they could not be read.
        """
        from quarterdeck.store.review import read_patch

        files: list[FileChange] = []
        is_cut = False
        for name in checkpoint.commits:
            patch = self._owner.client.git.diff(replica_id, name, checkpoint=checkpoint.id)
            try:
                found, was_cut = await read_patch(patch)
            except ClientError:
                return None
            files += found
            is_cut |= was_cut
        return files, is_cut

    async def rewind(self, replica_id: UUID, checkpoint: str, *, chat: bool) -> "Rewound":
        """Restore the files and branches of a checkpoint in all repositories.

        With `chat`, each chat shows a line about it, and each agent's next message mentions it.

        Raises:
            ClientError: a turn is running (`Conflict`), refused, or unreachable.
        """
        return await self._owner.client.git.rewind(replica_id, checkpoint, chat=chat)

    async def fork(self, replica_id: UUID, body: ForkReplica) -> ReplicaDetail:
        """Create a replica with the same files, branches and uncommitted changes.

        Raises:
            ClientError: a turn is running or the name is taken (`Conflict`), refused, or unreachable.
        """
        return await self._owner.client.replicas.fork(replica_id, body.name, body.message)

    async def delete(self, replica_id: UUID) -> None:
        """Delete a replica with its files and history; not an error when it was already deleted.

        Raises:
            ClientError: refused or unreachable.
        """
        self.deleting.add(replica_id)
        try:
            await self._owner.client.replicas.delete(replica_id)
        except NotFoundError:
            pass
        finally:
            self.deleting.discard(replica_id)
        self._owner.remove(replica_id, elsewhere=False)


async def _on_each_soon(
    states: Sequence[ReplicaState], read: Callable[[UUID], Awaitable[None]]
) -> None:
    """Read of each replica what can be read within `READ_SECONDS`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READ_SECONDS):
            await on_each(states, read)

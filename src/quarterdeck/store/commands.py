"""What a person has done to replicas and chats. Every command raises the client's errors."""

from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.client.errors import NotFound
from quarterdeck.store.changes import Change, TranscriptChanged
from quarterdeck.store.chats import ChatState
from quarterdeck.store.feed import PAGE, ReplicaFeed
from quarterdeck.store.following import Following, FollowingOwner
from quarterdeck.store.replicas import ReplicaState

if TYPE_CHECKING:
    from quarterdeck.client.client import Client


class CommandsOwner(FollowingOwner, Protocol):
    """What commands need of the deck."""

    replicas: dict[UUID, ReplicaState]
    following: Following

    @property
    def client(self) -> "Client": ...

    def chat(self, replica_id: UUID, chat_id: UUID) -> ChatState | None: ...

    def publish(self, change: Change) -> None: ...


class Commands:
    """Commands of one deck."""

    def __init__(self, owner: CommandsOwner) -> None:
        self._owner = owner
        self.deleting: set[UUID] = set()
        """Replicas that this cockpit is deleting: their end is no surprise."""

    async def open_chat(self, replica_id: UUID, chat_id: UUID) -> None:
        """Loads a chat's newest page, once.

        Raises:
            ClientError: the history could not be read.
        """
        owner = self._owner
        chat = owner.chat(replica_id, chat_id)
        if chat is None or chat.transcript is not None or chat.loading:
            return
        feed = owner.following.feed(replica_id)
        if feed is None:
            feed = ReplicaFeed(owner.client, owner.replicas[replica_id], owner)
        await feed.load(chat)

    async def load_older(self, replica_id: UUID, chat_id: UUID) -> None:
        """Loads the page before the oldest one.

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

    async def interrupt(self, replica_id: UUID) -> bool:
        """Stops every running turn of a replica; False when none ran.

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
    ) -> None:
        """Answers a question or permission request of the agent, with an option or a text.

        Raises:
            ClientError: refused, unreachable, or no longer awaited (`Conflict`).
        """
        chats = self._owner.client.chats
        await chats.respond(replica_id, chat_id, request_id, option_id=option_id, text=text)

    async def sleep(self, replica_id: UUID) -> None:
        """Puts a replica to sleep.

        Raises:
            ClientError: refused or unreachable.
        """
        await self._owner.client.replicas.sleep(replica_id)

    async def archive(self, replica_id: UUID) -> None:
        """Packs a replica's files away; its history stays readable, and waking restores it.

        Raises:
            ClientError: refused or unreachable.
        """
        await self._owner.client.replicas.archive(replica_id)

    async def wake(self, replica_id: UUID) -> None:
        """Wakes a replica, or tries again what failed.

        Raises:
            ClientError: refused or unreachable.
        """
        client = self._owner.client
        self._owner.following.follow(self._owner.replicas[replica_id])
        await client.replicas.wake(replica_id)

    async def delete(self, replica_id: UUID) -> None:
        """Deletes a replica with its files and history; one that is gone already is no error.

        Raises:
            ClientError: refused or unreachable.
        """
        self.deleting.add(replica_id)
        try:
            await self._owner.client.replicas.delete(replica_id)
        except NotFound:
            pass
        finally:
            self.deleting.discard(replica_id)
        self._owner.gone(replica_id, elsewhere=False)

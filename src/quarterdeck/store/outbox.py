"""Messages that were not delivered yet: on disk until the service has them.

A message whose fate is unknown (the connection broke after it was sent) is never resent automatically:
after a reconnect its chat's queue and history show whether it arrived; if they do not, the person is
asked. One that was certainly never sent is sent again automatically, in order.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

from quarterdeck.client.errors import (
    ClientError,
    ConflictError,
    LinkError,
    NotConnectedError,
    NotFoundError,
)
from quarterdeck.store.disk import OutgoingMessage
from quarterdeck.store.signals import ChatChange, Noticed
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import Image, MessageAccepted, SendMessage
from quarterdeck.wire.history import AgentEventType

if TYPE_CHECKING:
    from quarterdeck.client.chats import MessagesApi
    from quarterdeck.store.app_state import AppState


class QueuePlace(NamedTuple):
    """The position of a message: in the service's queue, or among unsent ones."""

    behind: tuple[UUID, ...] | None = None
    """The messages before it in the queue."""
    moment: datetime | None = None
    """When it was written, which orders unsent messages."""


def place_after(queue: Sequence[UUID], before: Collection[UUID]) -> int:
    """Return the first position, from 0, after all of the given messages."""
    return max((at for at, id in enumerate(queue, 1) if id in before), default=0)


async def move_after(
    messages: "MessagesApi", replica_id: UUID, chat_id: UUID, message_id: UUID, before: list[UUID]
) -> None:
    """Move a message right after the given ones, as far as it and they are still queued.

    Raises:
        ClientError: refused or unreachable; the message is where it was.
    """
    queue = [entry.id for entry in (await messages.queue(replica_id, chat_id)).queue]
    if message_id not in queue:
        return
    place = place_after([id for id in queue if id != message_id], before)
    if place == queue.index(message_id):
        return
    try:
        await messages.reorder_queue(replica_id, chat_id, message_id, place)
    except (ConflictError, NotFoundError):
        # It has started meanwhile, so it has no position any more.
        return


MILLISECOND = timedelta(milliseconds=1)
RECENT = 40
"""Events at the end of a history that are searched for a message of unknown fate."""


class Extras(NamedTuple):
    """Parts of a message besides its text."""

    goal_mode: bool = False
    model: str | None = None
    images: tuple[Image, ...] = ()
    uploads: tuple[str, ...] = ()
    place: QueuePlace | None = None
    """Its position before it was taken back and edited; by default it is last."""


NOTHING = Extras()


class Outbox:
    """Sends messages, and keeps those that have not arrived."""

    def __init__(self, owner: "AppState") -> None:
        self._disk = owner.disk
        self._owner = owner
        self._kept: list[OutgoingMessage] = []

    def load(self) -> None:
        """Load the messages of an earlier cockpit."""
        self._kept = self._disk.outgoing()
        for aside in self._disk.unreadable:
            text = f"Its file is damaged, and was set aside as {aside}. Look there for its text."
            self._owner.publish(Noticed("error", "Message not sent", text))

    def of_chat(self, chat_id: UUID | None) -> list[OutgoingMessage]:
        """Return the messages of a chat that have not arrived, oldest first."""
        return [message for message in self._kept if message.chat_id == chat_id]

    async def send(
        self,
        replica_id: UUID,
        chat_id: UUID,
        text: str,
        *,
        plan_mode: bool = False,
        extras: Extras = NOTHING,
    ) -> MessageAccepted | None:
        """Send a message; None when it could not be sent and is kept.

        Raises:
            ClientError: the service refused it; it is not kept, the caller still has the text.
            OSError: it cannot be saved to disk, so it was not sent either.
        """
        place = extras.place or QueuePlace()
        message = OutgoingMessage(
            key=uuid4().hex,
            replica_id=replica_id,
            chat_id=chat_id,
            text=text,
            plan_mode=plan_mode,
            goal_mode=extras.goal_mode,
            model=extras.model,
            images=list(extras.images),
            uploads=list(extras.uploads),
            behind=None if place.behind is None else list(place.behind),
            created_at=place.moment or self._moment(),
        )
        earlier = [kept for kept in self.of_chat(chat_id) if kept.state == "unsent"]
        if earlier or not self._owner.online:
            # Offline nothing can be sent, and earlier messages are sent first.
            message.state = "unsent"
        self._disk.save_outgoing(message)
        self._kept.append(message)
        self._kept.sort(key=lambda kept: kept.created_at)
        self._publish_change(message)
        if message.state == "sending":
            return await self._deliver(message)
        if self._owner.online:
            self._owner.want_flush()
        return None

    async def resend(self, message: OutgoingMessage) -> MessageAccepted | None:
        """Send a message of unknown fate again, at the person's request.

        Raises:
            ClientError: the service refused it; the text is still kept.
        """
        if message not in self._kept or message.state == "sending":
            return None
        before, message.state = message.state, "sending"
        self._publish_change(message)
        try:
            return await self._deliver(message, forget=False)
        except ClientError as error:
            message.state, message.problem = before, str(error)
            self._publish_change(message)
            raise

    def drop(self, message: OutgoingMessage) -> None:
        """Remove a message that has arrived, or that the person dropped."""
        self._disk.forget_outgoing(message.key)
        if message in self._kept:
            self._kept.remove(message)
        self._publish_change(message)

    def _moment(self) -> datetime:
        """Return the current time, but later than that of all others: it orders them on disk."""
        newest = max((kept.created_at + MILLISECOND for kept in self._kept), default=utc_now())
        return max(utc_now(), newest)

    def move(self, message: OutgoingMessage, by: int) -> bool:
        """Move an unsent message among those of its chat.

        Returns False when there is no such place. Messages that may have arrived keep theirs.

        Raises:
            OSError: the new order cannot be written.
        """
        movable = [kept for kept in self.of_chat(message.chat_id) if kept.state == "unsent"]
        at = movable.index(message) if message in movable else -1
        if at < 0 or not 0 <= at + by < len(movable):
            return False
        other = movable[at + by]
        message.created_at, other.created_at = other.created_at, message.created_at
        self._kept.sort(key=lambda kept: kept.created_at)
        self._disk.save_outgoing(message)
        self._disk.save_outgoing(other)
        self._publish_change(message)
        return True

    async def flush(self) -> None:
        """After a reconnect, find out which messages arrived, and send unsent ones."""
        for message in list(self._kept):
            try:
                if not await self._settle(message):
                    return
            except LinkError as error:
                self._owner.connection_lost(error)
                return
            except NotFoundError:
                self._give_up(message)
            except ClientError as error:
                self._refuse(message, error)

    async def _settle(self, message: OutgoingMessage) -> bool:
        """Handle one message; return False when the connection is lost again."""
        if message.state == "unsure" and await self._arrived(message):
            self.drop(message)
        elif message.state == "unsent" and message in self._kept:
            return await self._deliver(message, forget=False) is not None
        return True

    async def _deliver(
        self, message: OutgoingMessage, *, forget: bool = True
    ) -> MessageAccepted | None:
        """Send a message; None when it was not sent. `forget` drops one that the service refuses."""
        message.state = "sending"
        try:
            accepted = await self._owner.client.messages.send(message.replica_id, _body(message))
        except LinkError as error:
            self._keep(message, error)
            return None
        except ClientError:
            if forget:
                self.drop(message)
            raise
        self.drop(message)
        if message.behind is not None:
            await self._put_in_place(message.behind, message.replica_id, accepted)
        self._owner.want_queue(message.replica_id, accepted.chat_id)
        return accepted

    async def _put_in_place(
        self, behind: list[UUID], replica_id: UUID, accepted: MessageAccepted
    ) -> None:
        """Move an accepted message to its position; a failure is only reported."""
        messages = self._owner.client.messages
        try:
            await move_after(messages, replica_id, accepted.chat_id, accepted.message_id, behind)
        except ClientError as error:
            text = f"Moved to the end of the queue: {error} {error.next_step}"
            self._owner.publish(Noticed("warning", "Edited message", text, replica_id))

    def _keep(self, message: OutgoingMessage, error: ClientError) -> None:
        message.state = "unsent" if isinstance(error, NotConnectedError) else "unsure"
        message.problem = str(error)
        self._disk.save_outgoing(message)
        self._publish_change(message)
        self._owner.connection_lost(error)

    async def _arrived(self, message: OutgoingMessage) -> bool:
        if message.chat_id is None:
            return False
        page = await self._owner.client.history.page(
            message.replica_id, chat_id=message.chat_id, limit=RECENT
        )
        queue = await self._owner.client.messages.queue(message.replica_id, message.chat_id)
        sent = {
            event.payload.get("text")
            for event in page.events
            if event.type == AgentEventType.USER_MESSAGE and event.timestamp >= message.created_at
        }
        queued = {entry.message for entry in queue.queue if entry.queued_at >= message.created_at}
        return message.text in sent | queued

    def _refuse(self, message: OutgoingMessage, error: ClientError) -> None:
        message.state = "unsure"
        message.problem = str(error)
        self._disk.save_outgoing(message)
        text = f"{error} {error.next_step}"
        self._owner.publish(Noticed("error", "Message not sent", text, message.replica_id))
        self._publish_change(message)

    def _give_up(self, message: OutgoingMessage) -> None:
        """Set aside a message whose replica or chat was deleted."""
        aside = self._disk.set_aside(message.key)
        self._kept.remove(message)
        text = f"The replica or chat was deleted. The text is saved in {aside}."
        self._owner.publish(Noticed("warning", "Message not sent", text))

    def _publish_change(self, message: OutgoingMessage) -> None:
        if message.chat_id is not None:
            self._owner.publish(ChatChange(message.replica_id, message.chat_id))


def _body(message: OutgoingMessage) -> SendMessage:
    return SendMessage(
        message=message.text,
        chat_id=message.chat_id,
        model=message.model,
        images=message.images or None,
        plan_mode=message.plan_mode or None,
        goal_mode=message.goal_mode or None,
        canvas_upload_ids=message.uploads or None,
    )

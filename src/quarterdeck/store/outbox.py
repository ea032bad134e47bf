"""Messages on their way: on disk before they leave, gone when the service has them.

A message whose fate is unknown (the line broke after it left) is never sent twice by itself: after
a reconnect its chat's queue and history tell whether it arrived; only when they do not show it is
the person asked. One that surely never left goes out again by itself, in its order.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from uuid import UUID, uuid4

from quarterdeck.client.errors import ClientError, LinkError, NotConnected, NotFound
from quarterdeck.store.changes import Change, ChatChanged, Noticed
from quarterdeck.store.disk import ClientDisk, Outgoing
from quarterdeck.store.queue_places import Place, go_behind
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.messages import Image, MessageAccepted, SendMessage

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

MILLISECOND = timedelta(milliseconds=1)
RECENT = 40
"""Events at the end of a history among which a message of unknown fate is looked for."""


@dataclass(frozen=True)
class Extras:
    """What goes with a message beside its text."""

    goal_mode: bool = False
    model: str | None = None
    images: tuple[Image, ...] = ()
    uploads: tuple[str, ...] = ()
    place: Place | None = None
    """Where it stood before it was taken back and edited; else it is the last one."""


NOTHING = Extras()


class OutboxOwner(Protocol):
    """What the outbox needs of the deck."""

    @property
    def client(self) -> "Client": ...

    @property
    def online(self) -> bool: ...

    def publish(self, change: Change) -> None: ...

    def line_lost(self, error: Exception) -> None: ...

    def want_queue(self, replica_id: UUID, chat_id: UUID) -> None: ...

    def want_flush(self) -> None: ...


class Outbox:
    """Sends messages, and keeps those that have not arrived."""

    def __init__(self, disk: ClientDisk, owner: OutboxOwner) -> None:
        self._disk = disk
        self._owner = owner
        self._kept: list[Outgoing] = []

    def load(self) -> None:
        """Takes up what an earlier cockpit left."""
        self._kept = self._disk.outgoing()

    def of_chat(self, chat_id: UUID | None) -> list[Outgoing]:
        """Messages of a chat that have not arrived, oldest first."""
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
        """Sends a message; None when it could not leave and is kept.

        Raises:
            ClientError: the service refused it; it is not kept, the caller still has the text.
            OSError: it cannot be kept on disk, so it was not sent either.
        """
        place = extras.place or Place()
        message = Outgoing(
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
            # Without a line there is nothing to try, and what was written first goes first.
            message.state = "unsent"
        self._disk.save_outgoing(message)
        self._kept.append(message)
        self._kept.sort(key=lambda kept: kept.created_at)
        self._tell(message)
        if message.state == "sending":
            return await self._deliver(message)
        if self._owner.online:
            self._owner.want_flush()
        return None

    async def resend(self, message: Outgoing) -> MessageAccepted | None:
        """The person wants a message of unknown fate sent again.

        Raises:
            ClientError: the service refused it; the text is still kept.
        """
        if message not in self._kept or message.state == "sending":
            return None
        before, message.state = message.state, "sending"
        self._tell(message)
        try:
            return await self._deliver(message, forget=False)
        except ClientError as error:
            message.state, message.problem = before, str(error)
            self._tell(message)
            raise

    def drop(self, message: Outgoing) -> None:
        """The person does not want it any more, or it has arrived."""
        self._disk.forget_outgoing(message.key)
        if message in self._kept:
            self._kept.remove(message)
        self._tell(message)

    def _moment(self) -> datetime:
        """Now, and a millisecond behind all others at least: on disk the order is that of the moments."""
        newest = max((kept.created_at + MILLISECOND for kept in self._kept), default=utc_now())
        return max(utc_now(), newest)

    def move(self, message: Outgoing, by: int) -> bool:
        """Gives a message that never left another place among those of its chat.

        Returns False when there is no such place. What may have arrived keeps its own.

        Raises:
            OSError: the disk does not take the new order.
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
        self._tell(message)
        return True

    async def flush(self) -> None:
        """After a reconnect: finds out what arrived, and sends what never left."""
        for message in list(self._kept):
            try:
                if not await self._settle(message):
                    return
            except LinkError as error:
                self._owner.line_lost(error)
                return
            except NotFound:
                self._give_up(message)
            except ClientError as error:
                self._refuse(message, error)

    async def _settle(self, message: Outgoing) -> bool:
        """False when the line is down again."""
        if message.state == "unsure" and await self._arrived(message):
            self.drop(message)
        elif message.state == "unsent" and message in self._kept:
            return await self._deliver(message, forget=False) is not None
        return True

    async def _deliver(self, message: Outgoing, *, forget: bool = True) -> MessageAccepted | None:
        """None when it did not leave. `forget` drops what the service refuses."""
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
        """The service has the message whatever becomes of its place."""
        messages = self._owner.client.messages
        try:
            await go_behind(messages, replica_id, accepted.chat_id, accepted.message_id, behind)
        except ClientError as error:
            text = f"It waits as the last one, not where it was: {error} {error.next_step}"
            self._owner.publish(Noticed("warning", "Edited message", text, replica_id))

    def _keep(self, message: Outgoing, error: ClientError) -> None:
        message.state = "unsent" if isinstance(error, NotConnected) else "unsure"
        message.problem = str(error)
        self._disk.save_outgoing(message)
        self._tell(message)
        self._owner.line_lost(error)

    async def _arrived(self, message: Outgoing) -> bool:
        if message.chat_id is None:
            return False
        page = await self._owner.client.history.page(
            message.replica_id, chat_id=message.chat_id, limit=RECENT
        )
        queue = await self._owner.client.messages.queue(message.replica_id, message.chat_id)
        said = {
            event.payload.get("text")
            for event in page.events
            if event.type == AgentEventType.USER_MESSAGE and event.timestamp >= message.created_at
        }
        waits = {entry.message for entry in queue.queue if entry.queued_at >= message.created_at}
        return message.text in said | waits

    def _refuse(self, message: Outgoing, error: ClientError) -> None:
        message.state = "unsure"
        message.problem = str(error)
        self._disk.save_outgoing(message)
        text = f"{error} {error.next_step}"
        self._owner.publish(Noticed("error", "Message not sent", text, message.replica_id))
        self._tell(message)

    def _give_up(self, message: Outgoing) -> None:
        """Its replica or chat is gone: no chat will ever show it."""
        aside = self._disk.set_aside(message.key)
        self._kept.remove(message)
        text = f"Its replica or chat is gone. The text is kept in {aside}."
        self._owner.publish(Noticed("warning", "Message not sent", text))

    def _tell(self, message: Outgoing) -> None:
        if message.chat_id is not None:
            self._owner.publish(ChatChanged(message.replica_id, message.chat_id))


def _body(message: Outgoing) -> SendMessage:
    return SendMessage(
        message=message.text,
        chat_id=message.chat_id,
        model=message.model,
        images=message.images or None,
        plan_mode=message.plan_mode or None,
        goal_mode=message.goal_mode or None,
        canvas_upload_ids=message.uploads or None,
    )

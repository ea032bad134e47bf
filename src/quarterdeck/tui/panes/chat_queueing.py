"""What waits: the queue of the service, and messages that have not arrived."""

from textual import on, work

from quarterdeck.client.errors import ClientError
from quarterdeck.store.disk import Outgoing
from quarterdeck.store.queue_places import Place
from quarterdeck.tui.attachments import Attachment
from quarterdeck.tui.panes.chat_base import ChatBase
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.wire.messages import QueuedMessage

STARTED = "It has started already: ctrl+x interrupts it."
MOVES = {"up": -1, "down": 1}


class Queueing(ChatBase):
    """Edits, drops, reorders and sends again."""

    @on(QueueView.Wanted)
    def _deed_wanted(self, event: QueueView.Wanted) -> None:
        self._problem = ""
        chat = self.chat
        queued = (
            next((one for one in chat.queue if str(one.id) == event.key), None) if chat else None
        )
        if queued is not None:
            self._change_queue(event.deed, queued)
            return
        waiting = self._deck.outbox.of_chat(self.chat_id)
        message = next((one for one in waiting if one.key == event.key), None)
        if message is not None and message.state != "sending":
            self._change_own(event.deed, message)

    def _change_own(self, deed: str, message: Outgoing) -> None:
        outbox = self._deck.outbox
        match deed:
            case "resend":
                self._resend(message)
            case "up" | "down":
                try:
                    if outbox.move(message, MOVES[deed]):
                        self.queue.follow(message.key)
                except OSError as error:
                    self.trouble(f"not moved: {error.strerror}. Free some disk space.")
            case "edit":
                outbox.drop(message)
                if message.state == "unsent":
                    kept = None if message.behind is None else tuple(message.behind)
                    self._keep_place(Place(behind=kept, moment=message.created_at))
                self.attachments += [Attachment("image", image=one) for one in message.images]
                self.attachments += [Attachment("file", upload_id=one) for one in message.uploads]
                self._take_back(message.text, message.plan_mode, message.goal_mode)
            case _:
                outbox.drop(message)

    def _keep_place(self, place: Place) -> None:
        """The text will be sent to where it stood; of several the first one that was taken back."""
        self._places.setdefault(self.chat_id, place)

    def _take_back(self, text: str, plan_mode: bool = False, goal_mode: bool = False) -> None:
        self.composer.put_back(text, plan_mode, goal_mode)
        self.screen.set_focus(self.composer)

    @work(group="send")
    async def _resend(self, message: Outgoing) -> None:
        try:
            await self._deck.outbox.resend(message)
        except ClientError as error:
            self.refused("not sent", error)

    @work(group="queue")
    async def _change_queue(self, deed: str, message: QueuedMessage) -> None:
        commands = self._deck.chat_commands
        where = (self.replica_id, self.chat_id, message)
        place = self._place_of(message)
        try:
            match deed:
                case "up" | "down":
                    if await commands.move_queued(*where, MOVES[deed]):
                        self.queue.follow(str(message.id))
                case "edit" | "drop" if not await commands.dequeue(*where):
                    self.trouble(STARTED)
                case "edit":
                    self._keep_place(place)
                    self._take_back(message.message)
                case _:
                    pass
        except ClientError as error:
            self.refused("the queue is as it was", error)

    def _place_of(self, message: QueuedMessage) -> Place:
        order = [one.id for one in self.chat.queue] if self.chat else []
        return Place(behind=tuple(order[: order.index(message.id)] if message.id in order else ()))

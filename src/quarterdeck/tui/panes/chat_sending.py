"""What a person writes: drafts, sending, answering, and what happens when that fails."""

import contextlib
from uuid import UUID

from textual import on, work

from quarterdeck.client.errors import ClientError
from quarterdeck.store.drafts import DraftKeeper
from quarterdeck.store.outbox import Extras
from quarterdeck.store.prompt_history import PromptHistory
from quarterdeck.store.queue_places import Place
from quarterdeck.tui.attachments import Attachment, images_among
from quarterdeck.tui.panes.chat_base import ChatBase
from quarterdeck.tui.panes.chat_words import asks_for_text
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.secret_field import SecretField


class Sending(ChatBase):
    """The composer's side of a chat."""

    _keepers: dict[UUID, DraftKeeper]
    prompts: PromptHistory

    def keeper(self, chat_id: UUID) -> DraftKeeper:
        """What keeps the draft of a chat."""
        if chat_id not in self._keepers:
            self._keepers[chat_id] = DraftKeeper(self._deck.disk, chat_id)
        return self._keepers[chat_id]

    def keep_drafts(self) -> None:
        """Writes every draft that is not on disk yet."""
        # Nobody is left to tell that the disk is full; it was told when the text was typed.
        with contextlib.suppress(OSError):
            for keeper in self._keepers.values():
                keeper.keep()

    @on(Composer.Changed)
    def _draft_changed(self) -> None:
        if not self.composer.written:
            # What is written next is another message.
            self._places.pop(self.chat_id, None)
        self._keep_draft(self.keeper(self.chat_id), self.composer.written)

    @work(group="draft")
    async def _keep_draft(self, keeper: DraftKeeper, text: str) -> None:
        try:
            await keeper.keep_soon(text)
        except OSError as error:
            self.trouble(f"draft not kept: {error.strerror}. Free some disk space.")

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        self._problem = ""
        question = asks_for_text(self.chat)
        if question is None:
            place = self._places.pop(self.chat_id, None)
            self.send(event.text, plan_mode=event.plan_mode, goal_mode=event.goal_mode, place=place)
        else:
            self._remember(event.text)
            self._answer(question.request_id, event.text)

    def send(
        self,
        text: str,
        *,
        plan_mode: bool = False,
        goal_mode: bool = False,
        place: Place | None = None,
    ) -> None:
        """Sends a text with everything that is attached; it goes to its place if it had one."""
        chat = self.chat
        attached, self.attachments = self.attachments, []
        self._remember(text)
        self._send(
            self.chat_id,
            text,
            plan_mode,
            attached,
            Extras(
                goal_mode=goal_mode,
                model=chat.model if chat else None,
                images=images_among(attached),
                uploads=tuple(one.upload_id for one in attached if one.upload_id is not None),
                place=place,
            ),
        )
        self.show_state()

    def _remember(self, text: str) -> None:
        try:
            self.prompts.add(text)
        except OSError as error:
            self.trouble(f"not kept among your prompts: {error.strerror}. Free some disk space.")

    @work(group="send")
    async def _send(
        self, chat_id: UUID, text: str, plan_mode: bool, attached: list[Attachment], extras: Extras
    ) -> None:
        outbox = self._deck.outbox
        try:
            await outbox.send(self.replica_id, chat_id, text, plan_mode=plan_mode, extras=extras)
        except ClientError as error:
            why = f"{error} {error.next_step}"
        except OSError as error:
            why = f"{error.strerror}. Free some disk space."
        else:
            return
        if chat_id != self.chat_id:
            keeper = self.keeper(chat_id)
            await keeper.keep_soon(f"{text}\n{keeper.text}".rstrip("\n"))
            self.trouble(f"not sent, and kept as the other chat's draft: {why}")
            return
        self.attachments = attached + self.attachments
        if extras.place is not None:
            self._places[chat_id] = extras.place
        self.composer.put_back(text, plan_mode, extras.goal_mode)
        self.trouble(f"not sent: {why}")

    @on(SecretField.Given)
    def _secret_given(self, event: SecretField.Given) -> None:
        self._problem = ""
        self._give_secret(event.request_id, event.text)

    @work(group="respond")
    async def _give_secret(self, request_id: str, text: str) -> None:
        respond = self._deck.commands.respond
        try:
            await respond(self.replica_id, self.chat_id, request_id, text=text)
        except ClientError as error:
            # What was typed still stands in its field, and nowhere else.
            self.refused("not answered", error)
        else:
            self.query_one(SecretField).clear()

    @work(group="respond")
    async def _answer(self, request_id: str, text: str) -> None:
        respond = self._deck.commands.respond
        try:
            await respond(self.replica_id, self.chat_id, request_id, text=text)
        except ClientError as error:
            self.composer.put_back(text, plan_mode=False)
            self.refused("not answered", error)

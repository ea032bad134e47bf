"""A chat: transcript, what waits, and the composer."""

import contextlib
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes import TranscriptChanged
from quarterdeck.store.chats import ChatState
from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.chat_transcript import ChatTranscript
from quarterdeck.tui.panes.chat_words import destination, turn_words
from quarterdeck.tui.panes.drafts import DraftKeeper
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.tui.widgets.state_note import StateNote


class ChatPane(Vertical):
    """Shows one chat of one replica; everything it shows comes from the deck."""

    DEFAULT_CSS = """
    ChatPane {
        & TranscriptView { height: 1fr; }
        & #turn { height: 1; padding: 0 2; color: $text-muted; }
        & #turn.trouble { color: $text-error; }
    }
    """

    def __init__(self, deck: Deck, replica_id: UUID, chat_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self.replica_id = replica_id
        self.chat_id = chat_id
        self._drafts = DraftKeeper(deck.disk, chat_id)
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield ChatTranscript(Transcript())
        yield StateNote()
        yield QueueView()
        yield Static(id="turn", markup=False)
        yield Composer()

    @property
    def chat(self) -> ChatState | None:
        """The chat's state, None once it is gone."""
        return self._deck.chat(self.replica_id, self.chat_id)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def transcript(self) -> ChatTranscript:
        return self.query_one(ChatTranscript)

    @property
    def queue(self) -> QueueView:
        return self.query_one(QueueView)

    def on_mount(self) -> None:
        self.composer.text = self._drafts.text
        self.composer.move_cursor(self.composer.document.end)
        self.show_state()
        self._open()

    def on_unmount(self) -> None:
        # Nobody is left to tell that the disk is full; it was told when the text was typed.
        with contextlib.suppress(OSError):
            self._drafts.keep()

    @work(group="open")
    async def _open(self) -> None:
        try:
            await self._deck.commands.open_chat(self.replica_id, self.chat_id)
        except ClientError as error:
            self.trouble(f"{error} {error.next_step}")
            return
        self.load_transcript()

    def load_transcript(self) -> None:
        """Shows the transcript as the store has it."""
        chat = self.chat
        if chat is not None and chat.transcript is not None:
            self.transcript.set_transcript(chat.transcript, has_older=chat.has_older)

    def take(self, change: TranscriptChanged) -> None:
        """Some blocks changed."""
        if change.fold is None:
            self.load_transcript()
        else:
            self.transcript.refresh_change(change.fold)

    def come_online(self) -> None:
        """The line is back: a transcript that could not be read is read now."""
        chat = self.chat
        if chat is not None and chat.transcript is None and not chat.loading:
            self._problem = ""
            self._open()

    def show_state(self) -> None:
        """Shows turn, queue and unsent messages as the store has them."""
        chat = self.chat
        state = self._deck.replicas.get(self.replica_id)
        if chat is None or state is None:
            return
        self.queue.show(chat, self._deck.outbox.of_chat(chat.id))
        if self.queue.has_focus and not self.queue.actionable:
            self.screen.set_focus(self.composer)
        self.query_one(StateNote).show(state)
        self._show_turn(chat, state)
        self.composer.where(destination(chat, state.status, online=self._deck.online))

    def _show_turn(self, chat: ChatState, state: ReplicaState) -> None:
        line = self.query_one("#turn", Static)
        line.set_class(bool(self._problem), "trouble")
        line.update(self._problem or turn_words(chat, state.status))

    def trouble(self, text: str) -> None:
        """Says in the turn's line what went wrong, until the person does the next thing."""
        self._problem = one_line(text)
        self.show_state()

    # what the person does

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        self._problem = ""
        self._send(event.text, event.plan_mode)

    @work(group="send")
    async def _send(self, text: str, plan_mode: bool) -> None:
        outbox = self._deck.outbox
        try:
            await outbox.send(self.replica_id, self.chat_id, text, plan_mode=plan_mode)
        except ClientError as error:
            self._not_sent(text, plan_mode, f"{error} {error.next_step}")
        except OSError as error:
            self._not_sent(text, plan_mode, f"{error.strerror}. Free some disk space.")

    def _not_sent(self, text: str, plan_mode: bool, why: str) -> None:
        self.composer.put_back(text, plan_mode)
        self.trouble(f"not sent: {why}")

    @on(QueueView.Wanted)
    def _deed_wanted(self, event: QueueView.Wanted) -> None:
        waiting = self._deck.outbox.of_chat(self.chat_id)
        message = next((one for one in waiting if one.key == event.key), None)
        if message is None or message.state == "sending":
            return
        match event.deed:
            case "resend":
                self._resend(event.key)
            case "edit":
                self._deck.outbox.drop(message)
                self.composer.put_back(message.text, message.plan_mode)
                self.screen.set_focus(self.composer)
            case _:
                self._deck.outbox.drop(message)

    @work(group="send")
    async def _resend(self, key: str) -> None:
        outbox = self._deck.outbox
        for message in outbox.of_chat(self.chat_id):
            if message.key == key:
                try:
                    await outbox.resend(message)
                except ClientError as error:
                    self.trouble(f"not sent: {error} {error.next_step}")

    @on(Composer.Changed)
    def _draft_changed(self) -> None:
        self._keep_draft(self.composer.text)

    @work(group="draft", exclusive=True)
    async def _keep_draft(self, text: str) -> None:
        try:
            await self._drafts.keep_soon(text)
        except OSError as error:
            self.trouble(f"draft not kept: {error.strerror}. Free some disk space.")

    @on(TranscriptView.CopyWanted)
    def _copy_wanted(self, event: TranscriptView.CopyWanted) -> None:
        copy_text(self, event.text)

    @on(TranscriptView.OlderWanted)
    def _older_wanted(self) -> None:
        self._load_older()

    @work(group="older", exclusive=True)
    async def _load_older(self) -> None:
        try:
            await self._deck.commands.load_older(self.replica_id, self.chat_id)
        except ClientError as error:
            self.trouble(f"older messages: {error} {error.next_step}")
            return
        chat = self.chat
        if chat is not None:
            self.transcript.has_older = chat.has_older

    @on(TranscriptView.Answered)
    def _answered(self, event: TranscriptView.Answered) -> None:
        self._problem = ""
        self._respond(event.request_id, event.option_id)

    @work(group="respond")
    async def _respond(self, request_id: str, option_id: str) -> None:
        respond = self._deck.commands.respond
        try:
            await respond(self.replica_id, self.chat_id, request_id, option_id)
        except ClientError as error:
            self.trouble(f"{error} {error.next_step}")

"""A chat: transcript, what waits, and the composer.

Sending, Queueing   what the person writes, and what of it waits
Naming, Attaching   what is named in it and goes with it
Goals               goal and plan
Reading, Keeping    the transcript: finding, answering, taking it along
Several             the other chats of the replica
"""

import asyncio
from collections.abc import Iterable
from typing import ClassVar
from uuid import UUID

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes import TranscriptChanged
from quarterdeck.store.chats import ChatState
from quarterdeck.store.deck import Deck
from quarterdeck.store.prompt_history import PromptHistory
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.panes.chat_attaching import Attaching
from quarterdeck.tui.panes.chat_base import Aside
from quarterdeck.tui.panes.chat_goals import Goals, plan_ready_words
from quarterdeck.tui.panes.chat_keeping import Keeping
from quarterdeck.tui.panes.chat_naming import Naming
from quarterdeck.tui.panes.chat_queueing import Queueing
from quarterdeck.tui.panes.chat_reading import Reading
from quarterdeck.tui.panes.chat_several import Several
from quarterdeck.tui.panes.chat_transcript import ChatTranscript
from quarterdeck.tui.panes.chat_words import destination, secret_question, turn_words
from quarterdeck.tui.type_ahead import TakesKeys
from quarterdeck.tui.widgets.completions import Completions
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.find_line import FindLine
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.tui.widgets.secret_field import SecretField
from quarterdeck.tui.widgets.state_note import StateNote
from quarterdeck.tui.widgets.tab_bar import TabBar


class ChatPane(Goals, Queueing, Naming, Attaching, Reading, Keeping, Several, TakesKeys):
    """Shows one chat of one replica at a time; everything it shows comes from the deck."""

    DEFAULT_CSS = """
    ChatPane {
        & #chats { display: none; }
        & TranscriptView { height: 1fr; }
        & .line {
            height: 1;
            padding: 0 2;
            color: $text-muted;
            display: none;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & #plan { color: $text-warning; }
        & #turn { display: block; }
        & #turn.trouble { height: auto; max-height: 3; text-wrap: wrap; color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Where.CHATS),
        *bindings(Where.READING),
        *bindings(Where.WRITING),
    ]

    def __init__(self, deck: Deck, replica_id: UUID, chat_id: UUID) -> None:
        super().__init__(deck, replica_id, chat_id)
        self.prompts = PromptHistory(deck.disk, replica_id)
        self._keepers = {}
        self._asides = {}
        self._older_taken = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield TabBar(id="chats")
        yield ChatTranscript(Transcript())
        yield FindLine()
        yield StateNote()
        yield QueueView()
        yield Static(id="goal", classes="line", markup=False)
        yield Static(plan_ready_words(), id="plan", classes="line", markup=False)
        yield Static(id="turn", classes="line", markup=False)
        yield Static(id="attached", classes="line", markup=False)
        yield Completions()
        yield SecretField()
        yield Composer()

    def on_mount(self) -> None:
        self.composer.completions = self.query_one(Completions)
        self.composer.prompts = self.prompts
        self.enter_chat()

    def on_unmount(self) -> None:
        self.keep_drafts()

    def take_key(self, event: events.Key) -> bool:
        """Part of `TakesKeys`."""
        return self.composer.has_focus and self.composer.take_key(event)

    # one chat after the other

    def leave_chat(self) -> None:
        """Part of `Several`."""
        composer = self.composer
        self.keeper(self.chat_id).text = composer.written
        self.keep_drafts()
        self.end_find()
        self.workers.cancel_group(self, "naming")
        self.query_one(Completions).close()
        self.query_one(SecretField).clear()
        self._asides[self.chat_id] = Aside(
            composer.plan_mode, composer.goal_mode, self.attachments, self.transcript.standing
        )

    def enter_chat(self) -> None:
        """Part of `Several`."""
        aside = self._asides.pop(self.chat_id, Aside())
        composer = self.composer
        composer.plan_mode, composer.goal_mode = aside.plan_mode, aside.goal_mode
        self.attachments = aside.attachments
        composer.text = self.keeper(self.chat_id).text
        composer.move_cursor(composer.document.end)
        self._problem = ""
        if self.replica is not None:
            self.replica.shown_chat = self.chat_id
        self.transcript.set_transcript(Transcript())
        self.load_transcript()
        if aside.standing is not None:
            self.transcript.read_on(aside.standing)
        self.show_state()
        self._open(self.chat_id)

    @work(group="open", exclusive=True)
    async def _open(self, chat_id: UUID) -> None:
        chat = self.chat
        if chat is not None and chat.transcript is not None:
            return
        try:
            await self._deck.commands.open_chat(self.replica_id, chat_id)
        except ClientError as error:
            self.trouble(f"{error} {error.next_step}")
            return
        self.load_transcript()

    def load_transcript(self) -> None:
        """Shows the transcript as the store has it."""
        chat = self.chat
        if chat is not None and chat.transcript is not None:
            self.transcript.set_transcript(chat.transcript, has_older=chat.has_older)

    def take(self, changes: Iterable[TranscriptChanged]) -> None:
        """Some blocks changed."""
        view = self.transcript
        for change in changes:
            if change.fold is None:
                self.load_transcript()
            else:
                view.refresh_change(change.fold)
                if change.fold.older:
                    self._older_taken.set()

    def come_online(self) -> None:
        """The line is back: a transcript that could not be read is read now."""
        chat = self.chat
        if chat is not None and chat.transcript is None and not chat.loading:
            self._problem = ""
            self._open(chat.id)

    def show_state(self) -> None:
        """Shows turn, queue and unsent messages as the store has them."""
        state = self.replica
        if state is None:
            return
        if self.chat is None and state.chat_to_show is not None:
            # It was deleted, here or elsewhere.
            self.show_chat(state.chat_to_show.id)
            return
        chat = self.chat
        if chat is None:
            return
        self.show_tabs()
        self.queue.show(chat, self._deck.outbox.of_chat(chat.id))
        if self.queue.has_focus and not self.queue.actionable:
            self.screen.set_focus(self.composer)
        self.query_one(StateNote).show(state)
        self.show_goal(chat)
        self.show_attachments()
        self._show_turn(chat, state)
        self._show_secret(chat)
        self.composer.model = chat.model or ""
        self.composer.where(destination(chat, state.status, online=self._deck.online))

    def _show_turn(self, chat: ChatState, state: ReplicaState) -> None:
        line = self.query_one("#turn", Static)
        line.set_class(bool(self._problem), "trouble")
        line.update(self._problem or turn_words(chat, state.status))

    def _show_secret(self, chat: ChatState) -> None:
        """While a secret is asked for nothing can be written that would be kept as a draft."""
        question = secret_question(chat)
        secret = self.query_one(SecretField)
        if question is not None:
            secret.ask(question.request_id)
        if secret.display == (question is not None):
            return
        secret.display, self.composer.display = question is not None, question is None
        self.composer.can_focus = question is None
        if question is None:
            secret.clear()
        if self.composer.has_focus or secret.field.has_focus:
            self.screen.set_focus(self.writing_target)

    @property
    def writing_target(self) -> Widget:
        """What takes the keys of who writes."""
        secret = self.query_one(SecretField)
        return secret.field if secret.display else self.composer

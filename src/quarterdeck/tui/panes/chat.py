"""A chat: transcript, what waits, and the composer."""

from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes import TranscriptChanged
from quarterdeck.store.chats import ChatState
from quarterdeck.store.deck import Deck
from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.wire.replicas import WorkspaceStatus

DRAFT_DELAY = 0.5
"""Seconds after the last key until a draft is written to disk."""


class ChatPane(Vertical):
    """Shows one chat of one replica; everything it shows comes from the deck."""

    DEFAULT_CSS = """
    ChatPane {
        & TranscriptView { height: 1fr; }
        & #turn { height: 1; padding: 0 2; color: $text-muted; }
        & #turn.trouble { color: $text-error; }
    }
    """

    class Left(Message):
        """The person goes to the list."""

    def __init__(self, deck: Deck, replica_id: UUID, chat_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self.replica_id = replica_id
        self.chat_id = chat_id
        self._draft = deck.disk.draft(chat_id)

    def compose(self) -> ComposeResult:
        yield TranscriptView(Transcript())
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
    def transcript(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    def on_mount(self) -> None:
        self.composer.text = self._draft
        self.composer.move_cursor(self.composer.document.end)
        self.show_state()
        self._open()

    def on_unmount(self) -> None:
        self._save_draft()

    @work(exclusive=True, group="open")
    async def _open(self) -> None:
        try:
            await self._deck.open_chat(self.replica_id, self.chat_id)
        except ClientError as error:
            self._trouble(f"{error} {error.next_step}")
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

    def show_state(self) -> None:
        """Shows turn, queue and unsent messages as the store has them."""
        chat = self.chat
        state = self._deck.replicas.get(self.replica_id)
        if chat is None or state is None:
            return
        self.query_one(QueueView).show(chat, self._deck.outbox.of_chat(chat.id))
        words = self._turn_words(chat, state.status, state.record.error)
        line = self.query_one("#turn", Static)
        line.set_class(state.status == WorkspaceStatus.ERROR, "trouble")
        line.update(one_line(words))
        self.composer.where(_destination(chat, state.status))

    def _turn_words(self, chat: ChatState, status: str, error: str | None) -> str:
        match status:
            case WorkspaceStatus.ERROR:
                return f"failed: {error or 'no reason given'} (w tries again)"
            case WorkspaceStatus.PREPARING:
                return "preparing …"
            case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
                return f"{status}: a message or w wakes it"
            case _:
                pass
        if chat.record.awaiting_input:
            return "▲ waits for your answer"
        if chat.record.processing:
            since = chat.turn_started_at
            at = f" since {since.astimezone():%H:%M:%S}" if since else ""
            return f"● working{at} (ctrl+x interrupts)"
        return "○ idle"

    def _trouble(self, text: str) -> None:
        line = self.query_one("#turn", Static)
        line.set_class(True, "trouble")
        line.update(one_line(text))

    # what the person does

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        self._send(event.text, event.plan_mode)

    @work(group="send")
    async def _send(self, text: str, plan_mode: bool) -> None:
        composer = self.composer
        composer.clear_sent()
        try:
            await self._deck.outbox.send(self.replica_id, self.chat_id, text, plan_mode=plan_mode)
        except (ClientError, OSError) as error:
            composer.text = text if not composer.text else f"{text}\n{composer.text}"
            composer.plan_mode = plan_mode
            step = error.next_step if isinstance(error, ClientError) else "Free some disk space."
            self._trouble(f"not sent: {error} {step}")
            return

    @on(Composer.Interrupted)
    def _interrupt_asked(self) -> None:
        self.interrupt()

    @work(group="interrupt", exclusive=True)
    async def interrupt(self) -> None:
        """Stops the running turn."""
        try:
            ran = await self._deck.interrupt(self.replica_id, self.chat_id)
        except ClientError as error:
            self._trouble(f"{error} {error.next_step}")
            return
        if not ran:
            self._trouble("nothing is running")

    @on(Composer.Left)
    def _left(self, event: Composer.Left) -> None:
        if event.to == "transcript":
            self.screen.set_focus(self.transcript)
        else:
            self.post_message(self.Left())

    @on(Composer.Changed)
    def _draft_changed(self) -> None:
        self._draft = self.composer.text
        self._save_soon()

    @work(group="draft", exclusive=True)
    async def _save_soon(self) -> None:
        from asyncio import sleep

        await sleep(DRAFT_DELAY)
        self._save_draft()

    def _save_draft(self) -> None:
        try:
            self._deck.disk.save_draft(self.chat_id, self._draft)
        except OSError as error:
            if self.is_running:
                self._trouble(f"draft not kept: {error.strerror}. Free some disk space.")

    @on(TranscriptView.OlderWanted)
    def _older_wanted(self) -> None:
        self._load_older()

    @work(group="older", exclusive=True)
    async def _load_older(self) -> None:
        try:
            await self._deck.load_older(self.replica_id, self.chat_id)
        except ClientError as error:
            self._trouble(f"older messages: {error} {error.next_step}")
            return
        chat = self.chat
        if chat is not None:
            self.transcript.has_older = chat.has_older

    @on(TranscriptView.Answered)
    def _answered(self, event: TranscriptView.Answered) -> None:
        self._respond(event.request_id, event.option_id)

    @work(group="respond")
    async def _respond(self, request_id: str, option_id: str) -> None:
        try:
            await self._deck.respond(self.replica_id, self.chat_id, request_id, option_id)
        except ClientError as error:
            self._trouble(f"{error} {error.next_step}")


def _destination(chat: ChatState, status: str) -> str:
    """Where Enter sends to."""
    match status:
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return "enter wakes and sends"
        case WorkspaceStatus.PREPARING:
            return "enter sends when it is ready"
        case _:
            return "enter queues" if chat.record.processing else "enter sends"

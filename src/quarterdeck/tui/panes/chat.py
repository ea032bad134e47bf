"""The Chat tab: the transcript, the messages that wait, and the composer.

Messages, drafts and the queue are in `chat_messages`, dialogs in `chat_dialogs`, search in `chat_find`.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, cast
from uuid import UUID
from weakref import WeakKeyDictionary

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import TranscriptChanged
from quarterdeck.transcript.export import markdown_of, plain_lines
from quarterdeck.transcript.fold import Transcript
from quarterdeck.transcript.text import one_line
from quarterdeck.tui import panes
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.host_services import ask_for_file, attached_words
from quarterdeck.tui.kit.key_context import KeyContextChanged
from quarterdeck.tui.outside import editor, pager
from quarterdeck.tui.panes.chat_completions import (
    COMMANDS,
    find_completions,
    own_command,
    unknown_command,
)
from quarterdeck.tui.panes.chat_find import FindLine
from quarterdeck.tui.panes.chat_messages import (
    ChatMessages,
    ShownChat,
    chat_tab,
    destination,
    goal_words,
    plan_ready_words,
    secret_question,
    state_words,
)
from quarterdeck.tui.panes.chat_transcript import ChatTranscript
from quarterdeck.tui.textual_ext.type_ahead import TakesKeys, hold_keys
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.transcript_view.view import ReadingPosition
from quarterdeck.tui.widgets.completions import Completions, Token
from quarterdeck.tui.widgets.composer import Composer, SecretField
from quarterdeck.tui.widgets.lines import RareText, StateNote
from quarterdeck.tui.widgets.question import QuestionDock
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.tui.widgets.tab_bar import TabBar

if TYPE_CHECKING:
    from quarterdeck.tui.app import Cockpit


class ChatPane(Vertical, TakesKeys):
    """Shows one chat of one replica at a time; everything it shows comes from the app state."""

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
        & #plan { color: $needs-you; }
        & #turn { display: block; }
        & #turn.asking { color: $needs-you; text-style: bold; }
        & #turn.trouble { height: auto; max-height: 3; text-wrap: wrap; color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyContext.CHATS),
        *bindings(KeyContext.READING),
        *bindings(KeyContext.WRITING),
    ]
    _positions: ClassVar[WeakKeyDictionary[Transcript, ReadingPosition]] = WeakKeyDictionary()
    """Where the reader was in the chats that are not shown, also of other replicas."""

    def __init__(self, app_state: AppState, replica_id: UUID, chat_id: UUID) -> None:
        super().__init__()
        self._app_state = app_state
        self.replica_id = replica_id
        self.shown = ShownChat(app_state, replica_id, chat_id, self.show_state)
        self.transcript = ChatTranscript(Transcript())
        self.find_line = FindLine(self.transcript, self._read_older_page)
        self.queue = QueueView()
        self.completions = Completions()
        self.question = QuestionDock()
        self.secret = SecretField()
        self.composer = Composer()
        self.messages = ChatMessages(self.shown, self.composer, self.queue)
        self._chats = TabBar(id="chats")
        self._note = StateNote()
        self._goal = RareText(id="goal", classes="line")
        self._plan = RareText(id="plan", classes="line")
        self._turn = Static(id="turn", classes="line", markup=False)
        self._attached = RareText(id="attached", classes="line")
        self._turn_words = ""
        self.loaded, self._older_taken = asyncio.Event(), asyncio.Event()
        """Set while the chat's transcript is shown, and when an older page that was read is."""

    def compose(self) -> ComposeResult:
        yield self._chats
        yield self.transcript
        yield self.find_line
        yield self.queue
        yield self._turn
        yield self.question
        yield self.completions
        yield self.secret
        yield self.composer

    def on_mount(self) -> None:
        self.composer.completions = self.completions
        self.composer.prompts = self.messages.prompts
        self.composer.take_image = self.messages.attach_dropped
        self.composer.use_vim(cast("Cockpit", self.app).options.editing == "vim")
        self._enter_chat()

    def on_unmount(self) -> None:
        self.messages.save_drafts()
        self._positions[self.transcript.transcript] = self.transcript.reading_position

    def take_key(self, event: events.Key) -> bool:
        """Part of `TakesKeys`."""
        if self.question.is_typed_ahead(event):
            self.screen.set_focus(self.composer)
            self.composer.insert(event.character or "")
            return True
        return False

    @property
    def chat_id(self) -> UUID:
        """The chat that is shown."""
        return self.shown.id

    @property
    def chat(self) -> ChatState | None:
        """The chat's state, None once it is deleted."""
        return self.shown.state

    def enter(self) -> None:
        """Focus the question that waits for an answer, unless a message is being written; else the composer."""
        if self.question.takes_keys and self.messages.is_empty:
            self.question.take_focus(invited=False)
        else:
            self.screen.set_focus(self.writing_target)

    @property
    def writing_target(self) -> Widget:
        """The widget in which the user writes."""
        return self.secret.field if self.secret.display else self.composer

    # the chats of the replica

    def show_chat(self, chat_id: UUID) -> None:
        """Show another chat of the replica; the text in this one is kept as its draft."""
        if chat_id == self.chat_id or self._app_state.chat(self.replica_id, chat_id) is None:
            return
        self.messages.leave_chat()
        self.find_line.end()
        self.workers.cancel_group(self, "completions")
        self.completions.close()
        self.secret.clear()
        self._positions[self.transcript.transcript] = self.transcript.reading_position
        self.shown.id = chat_id
        self._enter_chat()

    def _enter_chat(self) -> None:
        self.messages.enter_chat()
        self.shown.problem = ""
        if self.shown.replica is not None:
            self.shown.replica.shown_chat = self.chat_id
        self.transcript.set_transcript(Transcript())
        self.loaded.clear()
        self._load_transcript()
        position = self._positions.pop(self.transcript.transcript, None)
        if position is not None and not (self.shown.replica and self.shown.replica.unseen):
            self.transcript.restore_position(position)
        self.show_state()
        self._open(self.chat_id)

    @work(group="open", exclusive=True)
    async def _open(self, chat_id: UUID) -> None:
        chat = self.chat
        if chat is not None and chat.transcript is not None:
            return
        try:
            await self._app_state.commands.open_chat(self.replica_id, chat_id)
        except ClientError as error:
            self.shown.show_problem(f"{error} {error.next_step}")
            return
        if self.is_attached:  # it may have been closed meanwhile
            self._load_transcript()

    @property
    def _all_chats(self) -> list[ChatState]:
        return self.shown.replica.ordered_chats if self.shown.replica else []

    @on(TabBar.Chosen, "#chats")
    def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.show_chat(UUID(event.key))

    def action_turn_chat(self, by: int) -> None:
        """Show the next chat (1), or the previous one (-1)."""
        ids = [chat.id for chat in self._all_chats]
        if self.chat_id in ids:
            self.show_chat(ids[(ids.index(self.chat_id) + by) % len(ids)])

    @work(exclusive=True, group="chats")
    async def action_new_chat(self) -> None:
        """Create a chat with an agent and a model."""
        await self._create_chat()

    async def _create_chat(self, agent: str | None = None) -> None:
        commands = self._app_state.chat_commands
        try:
            agent = agent or await panes.chat_dialogs.choose_agent(self, commands)
            model = agent and await panes.chat_dialogs.choose_model(self, commands, agent)
            if agent is not None and model is not None:
                with hold_keys(self, "Creating the chat"):
                    self.show_chat(await commands.create(self.replica_id, agent, model or None))
                    self.screen.set_focus(self.composer)
        except ClientError as error:
            self.shown.refused("no new chat", error)

    @work(exclusive=True, group="chats")
    async def action_pick_model(self) -> None:
        """Choose the model of the next messages; another agent needs another chat."""
        if agent := await panes.chat_dialogs.pick_model(self, self.shown):
            await self._create_chat(agent)

    @work(exclusive=True, group="chats")
    async def action_pick_setting(self, name: "panes.chat_dialogs.SettingName") -> None:
        """Choose the permission mode or the thinking level."""
        await panes.chat_dialogs.choose_setting(self, self.shown, name)

    @work(exclusive=True, group="chats")
    async def action_rename_chat(self) -> None:
        """Rename the chat."""
        await panes.chat_dialogs.ask_name(self, self.shown)

    @work(exclusive=True, group="chats")
    async def action_delete_chat(self) -> None:
        """Delete the chat, after asking."""
        chat = self.chat
        if chat is None:
            return
        if len(self._all_chats) < 2:
            self.shown.show_problem(
                "The only chat cannot be deleted; delete the replica instead (d in the list)."
            )
        elif await panes.chat_dialogs.confirm_delete(self, chat, self._app_state.agent_name):
            try:
                await self._app_state.chat_commands.delete(self.replica_id, chat.id)
            except ClientError as error:
                self.shown.refused("not deleted", error)

    # showing the state of the store

    def take(self, changes: Iterable[TranscriptChanged]) -> None:
        """Show changed blocks."""
        for change in changes:
            if change.fold is None:
                self._load_transcript()
            else:
                self.transcript.refresh_change(change.fold)
                if change.fold.older:
                    self._older_taken.set()
        chat, replica = self.chat, self.shown.replica
        if chat is not None and replica is not None:
            self._show_turn(chat, replica)  # the agent may have noted a state
            self._show_question(chat)

    def _load_transcript(self) -> None:
        chat = self.chat
        # Who asked for it and the store both report it; the second time must not move the reader.
        if chat and chat.transcript and chat.transcript is not self.transcript.transcript:
            self.transcript.set_transcript(chat.transcript, has_older=chat.has_older)
            self.loaded.set()

    def come_online(self) -> None:
        """Read a transcript that could not be read while there was no connection."""
        chat = self.chat
        if chat is not None and chat.transcript is None and not chat.loading:
            self.shown.problem = ""
            self._open(chat.id)

    def show_state(self) -> None:
        """Show turn, queue, unsent messages and attachments."""
        chat, replica = self.chat, self.shown.replica
        if replica is None:
            return
        if chat is None:
            if replica.chat_to_show is not None:  # it was deleted, here or elsewhere
                self.show_chat(replica.chat_to_show.id)
            return
        self.transcript.show_speaker(one_line(self._app_state.agent_name(chat.record.provider)))
        chats = self._all_chats
        self._chats.display = len(chats) > 1
        tabs = [chat_tab(known, self._app_state.agent_name) for known in chats]
        self._chats.show(tabs, str(chat.id))
        self.queue.show(chat, self._app_state.outbox.of_chat(chat.id))
        if self.queue.has_focus and not self.queue.actionable:
            self.screen.set_focus(self.composer)
        self._note.show(replica, before=self.queue)
        goal = chat.record.goal
        self._goal.show_text(goal_words(goal) if goal is not None else "", after=self.queue)
        self._plan.show_text(plan_ready_words() if chat.plan_waits else "", before=self._turn)
        self._show_attachments()
        self._show_turn(chat, replica)
        self._show_question(chat)
        self.composer.model = chat.model or ""
        self.composer.show_destination(
            *destination(chat, replica.status, online=self._app_state.online)
        )

    def _show_attachments(self) -> None:
        attachments = self.messages.draft.attachments
        self.composer.sends_empty = any(attachment.upload_id for attachment in attachments)
        self._attached.show_text(attached_words("next", attachments), before=self.completions)

    def _show_turn(self, chat: ChatState, replica: ReplicaState) -> None:
        words = self.shown.problem or state_words(chat, replica.status)
        if words == self._turn_words:
            return
        self._turn_words = words
        self._turn.set_class(bool(self.shown.problem), "trouble")
        self._turn.set_class(chat.record.awaiting_input, "asking")
        self._turn.update(words)

    def _show_question(self, chat: ChatState) -> None:
        """Show the question that waits; the focus goes to it unless the user writes or reads."""
        dock, waiting = self.question, chat.open_questions
        had_focus = dock.has_focus_within
        tool_id = waiting[0].tool_id if waiting else None
        tool = chat.transcript.tool(tool_id) if chat.transcript and tool_id else None
        if unsent := dock.show(waiting, tool, self._app_state.agent_name(chat.record.provider)):
            self.composer.put_back(unsent, plan_mode=False)
        self._show_secret(chat)
        if had_focus:
            self.post_message(KeyContextChanged())
            if not dock.takes_keys:
                self.screen.set_focus(self.writing_target)
        else:
            self._offer_question()

    @on(events.DescendantFocus)
    def _offer_question(self) -> None:
        """Give the focus to a question that has not had it, if the user is at the empty composer."""
        is_new = self.question.takes_keys and not self.question.offered
        if is_new and self.composer.has_focus and self.messages.is_empty:
            self.question.take_focus(invited=False)

    def _show_secret(self, chat: ChatState) -> None:
        """Disable writing while a secret is requested, since the text would be kept as a draft."""
        question, secret = secret_question(chat), self.secret
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

    # reading the transcript

    @on(TranscriptView.CopyWanted)
    def _copy_wanted(self, event: TranscriptView.CopyWanted) -> None:
        copy_text(self, event.text)

    def action_copy_message(self) -> None:
        """Copy the agent's last message."""
        panes.chat_dialogs.copy_message(self, self.shown)

    @on(TranscriptView.OlderWanted)
    @work(group="older", exclusive=True)
    async def _older_wanted(self) -> None:
        await self._read_older()

    async def _read_older(self) -> bool:
        """Read one page more; False when there is none, or it cannot be read."""
        chat = self.chat
        if chat is None or (before := chat.before_cursor) is None:
            return False
        try:
            await self._app_state.commands.load_older(self.replica_id, chat.id)
        except ClientError as error:
            self.shown.refused("older messages", error)
            return False
        if chat is self.chat:
            self.transcript.has_older = chat.has_older
        return chat.before_cursor != before

    async def _read_older_page(self) -> bool:
        """Read one page more, and wait until it is shown."""
        self._older_taken.clear()
        if not await self._read_older():
            return False
        # The frame brings it to the reader; before that its lines are not counted.
        await self._older_taken.wait()
        return True

    @work(group="text", exclusive=True)
    async def show_text(self, chat_id: UUID, at: datetime) -> None:
        """Show what was written in a chat at a time; older pages are read until it is there."""
        self.show_chat(chat_id)
        self.screen.set_focus(self.transcript)
        await self.loaded.wait()
        while not self.transcript.go_to_time(at) and await self._read_older_page():
            pass

    def action_find(self) -> None:
        """Ask for a search text."""
        self.find_line.begin()

    def action_find_again(self, by: int) -> None:
        """Go to the next match (1), or to the previous one (-1)."""
        self.find_line.again(by)

    def close_find(self) -> bool:
        """End a search whose matches are still marked; False when there is none in the transcript."""
        if is_open := self.find_line.display and self.transcript.has_focus:
            self.find_line.end()
        return is_open

    async def action_open_block(self) -> None:
        """Open the block under the cursor in `$PAGER`."""
        if (block := self.transcript.cursor_block) is not None:
            text = "\n".join(plain_lines(block))
            await panes.chat_dialogs.look_at_text(self, self.shown, text, pager)

    async def action_open_all(self) -> None:
        """Open the loaded part of the transcript in `$EDITOR`."""
        text = markdown_of(self.transcript.transcript.blocks)
        await panes.chat_dialogs.look_at_text(self, self.shown, text, editor)

    @work(exclusive=True, group="export")
    async def action_export(self) -> None:
        """Ask for a name, and write the whole chat to it."""
        await panes.chat_dialogs.ask_export(self, self.shown)

    @work(exclusive=True, group="export")
    async def action_save_images(self) -> None:
        """Ask for a name, and write the images of the block under the cursor to it."""
        if images := await panes.chat_dialogs.read_images(self, self.shown, self.transcript):
            await panes.chat_dialogs.ask_to_save(self, self.shown, images)

    @work(exclusive=True, group="export")
    async def action_view_images(self) -> None:
        """Show the images of the block under the cursor; save them where none can be displayed."""
        await panes.chat_dialogs.view_images(self, self.shown, self.transcript)

    # questions, plans and goals

    def to_question(self) -> None:
        """Go to the question that waits for an answer: to its options, or to where the answer is typed."""
        if self.question.takes_keys:
            self.question.take_focus(invited=True)
        elif self.question.display:
            self.screen.set_focus(self.writing_target)

    @on(QuestionDock.Answered)
    @work(group="respond")
    async def _answered(self, event: QuestionDock.Answered) -> None:
        self.shown.problem = ""
        try:
            await self.messages.respond(event)
        except ClientError as error:
            self.question.reopen()
            self.shown.show_problem(f"{error} {error.next_step}")

    @on(SecretField.Given)
    @work(group="respond")
    async def _secret_given(self, event: SecretField.Given) -> None:
        self.shown.problem = ""
        respond = self._app_state.commands.respond
        try:
            await respond(self.replica_id, self.chat_id, event.request_id, text=event.text)
        except ClientError as error:
            # What was typed is still in its field, and nowhere else.
            self.shown.refused("not answered", error)
        else:
            self.secret.clear()

    def action_accept_plan(self) -> None:
        """Start the proposed plan."""
        if self.chat is not None and self.chat.plan_waits:
            self.shown.problem = ""
            self.messages.approve_plan()

    def action_change_plan(self) -> None:
        """Ask for another plan with the next message."""
        if self.chat is not None and self.chat.plan_waits:
            self.composer.plan_mode = True
            self.screen.set_focus(self.composer)

    @work(exclusive=True, group="goal")
    async def action_goal(self) -> None:
        """Set the goal and its budget."""
        await panes.chat_dialogs.ask_goal(self, self.shown)

    @work(exclusive=True, group="goal")
    async def action_switch_goal(self) -> None:
        """Pause the goal, or resume it."""
        await panes.chat_dialogs.switch_goal(self.shown)

    # writing

    @on(Composer.Changed)
    def _draft_changed(self) -> None:
        self.messages.draft_changed()

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        self.shown.problem = ""
        self.transcript.follow()
        if event.text.strip() in COMMANDS and not event.goal_mode:
            self._carry_out(event)
        elif not self.messages.doubts(event, unknown_command(self.shown, event.text)):
            self.messages.submit(event)

    @work(group="command")
    async def _carry_out(self, event: Composer.Submitted) -> None:
        """Carry out a command of the cockpit, unless the agent has one of this name."""
        if command := await own_command(self.shown, event.text):
            await self.run_action(command.action)
        else:
            self.messages.submit(event)

    @on(Composer.Cleared)
    def _cleared(self, event: Composer.Cleared) -> None:
        self.messages.remember(event.text)

    @on(QueueView.Wanted)
    def _queue_wanted(self, event: QueueView.Wanted) -> None:
        self.shown.problem = ""
        self.messages.change_queue(event)

    @on(Composer.TokenChanged)
    def _token_changed(self, event: Composer.TokenChanged) -> None:
        if event.token is None:
            self.workers.cancel_group(self, "completions")
            self.completions.close()
        else:
            self._complete(event.token)

    @on(Completions.Clicked)
    def _completion_clicked(self) -> None:
        self.composer.accept()
        self.screen.set_focus(self.composer)

    @work(group="completions", exclusive=True)
    async def _complete(self, token: Token) -> None:
        """Offer completions; each key that changes the word cancels the previous request."""
        try:
            found = await find_completions(self.shown, token)
        except ClientError as error:
            self.completions.close()
            self.shown.refused("nothing to complete", error)
            return
        if self.composer.token == token:
            self.completions.offer(found)

    @work(exclusive=True, group="attach")
    async def action_attach(self) -> None:
        """Ask for a file, and attach it."""
        await ask_for_file(self, "Attach a file", self.messages.attach)

    def action_detach(self) -> None:
        """Remove all attachments."""
        self.messages.detach()

    async def action_open_paste(self) -> None:
        """Open the folded paste at the cursor in `$PAGER`."""
        await self.messages.open_paste()

    async def action_editor(self) -> None:
        """Edit the message in `$EDITOR`."""
        await self.messages.edit_outside()

"""The Chat tab's chat with its status, and its messages: drafts, sending, the queue, attachments."""

import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from textual.app import App
from textual.widget import Widget

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.chats import ChatState
from quarterdeck.store.disk import OutgoingMessage
from quarterdeck.store.drafts import DraftKeeper, PromptHistory
from quarterdeck.store.outbox import Extras, QueuePlace
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.blocks import QuestionBlock, duration_text
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import keyed
from quarterdeck.tui.host_services import Attachment, FileRead, images_among
from quarterdeck.tui.outside import OutsideError, edit, look_at, pager
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.question import QuestionDock
from quarterdeck.tui.widgets.queue_view import QueueView
from quarterdeck.tui.widgets.tab_bar import Tab
from quarterdeck.wire.chats import PLAN_APPROVED, ChatGoal, Delivery, QueuedMessage
from quarterdeck.wire.replicas import WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.tui.panes.chat_messages import ShownChat


class ShownChat:
    """The chat of a replica that a pane shows. All parts of the pane share it.

    `problem` is shown instead of the state until the next user action. `refresh` shows the
    chat as the store has it.
    """

    def __init__(
        self, app_state: AppState, replica_id: UUID, chat_id: UUID, refresh: Callable[[], None]
    ) -> None:
        self.app_state = app_state
        self.replica_id = replica_id
        self.id = chat_id
        self.problem = ""
        self.refresh = refresh
        self.known_commands: dict[UUID, frozenset[str]] = {}
        """The agent's commands by chat, as they were read last."""

    @property
    def state(self) -> ChatState | None:
        """The chat's state, None once it is deleted."""
        return self.app_state.chat(self.replica_id, self.id)

    @property
    def replica(self) -> ReplicaState | None:
        """The replica's state, None once it is deleted."""
        return self.app_state.replicas.get(self.replica_id)

    def show_problem(self, text: str) -> None:
        """Show what went wrong."""
        self.problem = one_line(text)
        self.refresh()

    def refused(self, what: str, error: ClientError) -> None:
        """Show that the service refused a request."""
        self.show_problem(f"{what}: {error} {error.next_step}")


def state_words(chat: ChatState, status: str) -> str:
    """Return what the chat is doing, and the settings of its agent."""
    return _turn_words(chat, status) + _setting_words(chat)


def _turn_words(chat: ChatState, status: str) -> str:
    """Return what the chat is doing."""
    match status:
        case WorkspaceStatus.ERROR:
            return "✗ failed"
        case WorkspaceStatus.PREPARING:
            return "◌ preparing"
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return f"☾ {status}: a message wakes it, or " + keyed("{replica.wake} in the list")
        case _:
            pass
    if chat.record.awaiting_input:
        return keyed("▲ Waiting for your answer · {chat.question} to answer")
    if chat.record.processing:
        since = chat.turn_started_at
        at = f" since {since.astimezone():%H:%M:%S}" if since else ""
        doing = one_line(chat.noted_state) or "working"
        return f"● {doing}{at} " + keyed("({composer.interrupt} interrupts)")
    return "✗ the last turn failed" if chat.last_turn_failed else "○ idle"


def _setting_words(chat: ChatState) -> str:
    """Return the permission mode, the model and the thinking level of a chat's agent."""
    record = chat.record
    values = (record.permission_mode, record.model, record.thinking_level)
    return "".join(f" · {one_line(value.name)}" for value in values if value is not None)


def chat_tab(chat: ChatState, name: Callable[[str], str]) -> Tab:
    """Return the tab of a chat: its state, and its title or agent as `name` calls it."""
    needs_you = chat.record.awaiting_input or chat.plan_waits
    mark = "▲ " if needs_you else "● " if chat.record.processing else ""
    label = mark + (one_line(chat.record.title or "") or one_line(name(chat.record.provider)))
    return Tab(str(chat.id), label, needs_you=needs_you)


def goal_words(goal: ChatGoal) -> str:
    """Return the state of a goal, and its cost."""
    spent = _tokens(goal.tokens_used)
    if goal.token_budget:
        spent += f"/{_tokens(goal.token_budget)}"
    took = f", {duration_text(goal.time_used_seconds)}" if goal.time_used_seconds else ""
    status = one_line(goal.status).replace("_", " ")
    return f"goal {status} · {spent} tokens{took} · {one_line(goal.objective)}"


def _tokens(count: int) -> str:
    for size, unit in ((1_000_000, "m"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return str(count)


def secret_question(chat: ChatState | None) -> QuestionBlock | None:
    """Return the question that waits, if its answer is a secret."""
    question = asks_for_text(chat)
    return question if question is not None and question.secret else None


def asks_for_text(chat: ChatState | None) -> QuestionBlock | None:
    """Return the question that waits, if a typed text answers it."""
    question = next(iter(chat.open_questions), None) if chat is not None else None
    return question if question is not None and question.takes_text else None


def destination(chat: ChatState, status: str, *, online: bool) -> tuple[str, str]:
    """Return what the key that sends does with the text, as its label and in full."""
    label, words = _destination(chat, status, online=online)
    return label, keyed(words)


def _destination(chat: ChatState, status: str, *, online: bool) -> tuple[str, str]:
    if not online:
        return "queue", "Offline: {composer.send} queues locally"
    match status:
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return "send", "{composer.send} wakes and sends"
        case WorkspaceStatus.PREPARING:
            return "send", "{composer.send} sends when it is ready"
        case WorkspaceStatus.ERROR:
            return "send", "first wake it: {composer.transcript}, then {replica.wake}"
        case _ if asks_for_text(chat):
            return "answer", "{composer.send} answers the question"
        case _ if chat.record.processing and chat.open_questions:
            return "queue", "{composer.send} queues until you answer"
        case _ if chat.record.processing:
            edits = " · {composer.queue} edits" if chat.queue else ""
            return "queue", "{composer.send} queues · {composer.steer} steers" + edits
        case _:
            return "send", "{composer.send} sends"


def plan_ready_words() -> str:
    """Return that a plan waits for the user."""
    return keyed("▲ Plan ready: {chat.plan-accept} approve · {chat.plan-change} request changes")


STARTED = "Already started; ctrl+x interrupts it."
MOVES = {"up": -1, "down": 1}


@dataclass
class MessageDraft:
    """The message being written in a chat.

    `keeper` has the text. The modes are the composer's while the chat is shown.
    """

    keeper: DraftKeeper
    plan_mode: bool = False
    goal_mode: bool = False
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    place: QueuePlace | None = None
    """The position of the message before it was taken back into the composer."""


class ChatMessages:
    """Connects the composer and the queue with the chat that is shown."""

    def __init__(self, shown: ShownChat, composer: Composer, queue: QueueView) -> None:
        self._shown = shown
        self._composer = composer
        self._queue = queue
        self._drafts: dict[UUID, MessageDraft] = {}
        self._doubted: tuple[UUID, str] | None = None
        """The chat and the text with an unknown command that was put back."""
        self.prompts = PromptHistory(shown.app_state.disk, shown.replica_id)

    @property
    def draft(self) -> MessageDraft:
        """The draft of the chat that is shown."""
        return self._draft(self._shown.id)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a message has been written yet."""
        return not (self._composer.text or self.draft.attachments)

    def _draft(self, chat_id: UUID) -> MessageDraft:
        if chat_id not in self._drafts:
            self._drafts[chat_id] = MessageDraft(DraftKeeper(self._shown.app_state.disk, chat_id))
        return self._drafts[chat_id]

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        self._composer.run_worker(work, group=group)

    # drafts

    def leave_chat(self) -> None:
        """Keep the composer's text as the draft of the chat shown until now."""
        draft, composer = self.draft, self._composer
        draft.keeper.text = composer.written
        draft.plan_mode, draft.goal_mode = composer.plan_mode, composer.goal_mode
        self.save_drafts()

    def enter_chat(self) -> None:
        """Fill the composer with the draft of the chat shown now."""
        draft, composer = self.draft, self._composer
        composer.plan_mode, composer.goal_mode = draft.plan_mode, draft.goal_mode
        composer.text = draft.keeper.text
        composer.move_cursor(composer.document.end)

    def save_drafts(self) -> None:
        """Write every draft that is not on disk yet."""
        # There is no screen left to report a full disk; that was reported when the text was typed.
        with contextlib.suppress(OSError):
            for draft in self._drafts.values():
                draft.keeper.keep()

    def draft_changed(self) -> None:
        """Save the text in the composer soon."""
        if not self._composer.written:
            self.draft.place = None  # what is written next is another message
        self._run(partial(self._save_draft, self.draft.keeper, self._composer.written), "draft")

    async def _save_draft(self, keeper: DraftKeeper, text: str) -> None:
        try:
            await keeper.keep_soon(text)
        except OSError as error:
            if not self._shown.problem:  # such as that the text was not sent
                self._shown.show_problem(
                    f"draft not saved: {error.strerror}. Free some disk space."
                )

    def remember(self, text: str) -> None:
        """Add a text to the earlier prompts."""
        try:
            self.prompts.add(text)
        except OSError as error:
            self._shown.show_problem(
                f"not saved in the prompt history: {error.strerror}. Free some disk space."
            )

    # sending

    def doubts(self, event: Composer.Submitted, command: str) -> bool:
        """Put an unknown command back, unless the person sends it again or answers a question."""
        doubted = (self._shown.id, event.text)
        sent_again, self._doubted = self._doubted == doubted, None
        if not command or sent_again or asks_for_text(self._shown.state) is not None:
            return False
        self._doubted = doubted
        self._composer.put_back(event.text, event.plan_mode, event.goal_mode)
        self._shown.show_problem(
            keyed(f"{command} is not a command of this agent. {{composer.send}} again sends it.")
        )
        return True

    def submit(self, event: Composer.Submitted) -> None:
        """Send the text, or answer the open question with it."""
        question = asks_for_text(self._shown.state)
        if question is None:
            place, self.draft.place = self.draft.place, None
            chat = self._shown.state
            if event.steer and chat and chat.record.processing and self._shown.app_state.online:
                self._run(partial(self._send_into_turn, event, place), "steer")
                return
            self.send(event.text, plan_mode=event.plan_mode, goal_mode=event.goal_mode, place=place)
        else:
            self.remember(event.text)
            self._run(partial(self._answer, question.request_id, event.text), "respond")

    async def _send_into_turn(self, event: Composer.Submitted, place: QueuePlace | None) -> None:
        modes = {"plan_mode": event.plan_mode, "goal_mode": event.goal_mode}
        if await may_steer(self._composer, self._shown):
            self.send(event.text, **modes, place=place, into_turn=True)
        else:
            self._composer.put_back(event.text, **modes)
            self.draft.place = self.draft.place or place

    def send(
        self,
        text: str,
        *,
        plan_mode: bool = False,
        goal_mode: bool = False,
        place: QueuePlace | None = None,
        into_turn: bool = False,
    ) -> None:
        """Send a text with all attachments; it goes to its previous position if it had one."""
        chat, draft = self._shown.state, self.draft
        attached, draft.attachments = draft.attachments, []
        extras = Extras(
            goal_mode=goal_mode,
            model=chat.model if chat else None,
            images=images_among(attached),
            uploads=tuple(
                attachment.upload_id for attachment in attached if attachment.upload_id is not None
            ),
            place=place,
        )
        self.remember(text)
        sending = partial(self._send, self._shown.id, text, plan_mode, attached, extras, into_turn)
        self._run(sending, "send")
        self._shown.refresh()

    def approve_plan(self) -> None:
        """Send the message that starts the proposed plan."""
        self.send(PLAN_APPROVED)

    async def _send(
        self,
        chat_id: UUID,
        text: str,
        plan_mode: bool,
        attached: list[Attachment],
        extras: Extras,
        into_turn: bool,
    ) -> None:
        shown = self._shown
        send = shown.app_state.outbox.send
        try:
            sent = await send(shown.replica_id, chat_id, text, plan_mode=plan_mode, extras=extras)
        except ClientError as error:
            why = f"{error} {error.next_step}"
        except OSError as error:
            why = f"{error.strerror}. Free some disk space."
        else:
            if into_turn and sent is not None and sent.status == Delivery.QUEUED:
                await steer(shown, chat_id, sent.message_id)
            return
        draft = self._draft(chat_id)
        draft.attachments = attached + draft.attachments
        draft.place = extras.place or draft.place
        if chat_id == shown.id:
            self._composer.put_back(text, plan_mode, extras.goal_mode)
            shown.show_problem(f"not sent: {why}")
            return
        draft.plan_mode = draft.plan_mode or plan_mode
        draft.goal_mode = draft.goal_mode or extras.goal_mode
        shown.show_problem(f"not sent; it is in the other chat's draft: {why}")
        await self._save_draft(draft.keeper, f"{text}\n{draft.keeper.text}".rstrip("\n"))

    async def _answer(self, request_id: str, text: str) -> None:
        shown = self._shown
        respond = shown.app_state.commands.respond
        try:
            await respond(shown.replica_id, shown.id, request_id, text=text)
        except ClientError as error:
            self._composer.put_back(text, plan_mode=False)
            shown.refused("not answered", error)

    async def respond(self, answer: QuestionDock.Answered) -> None:
        """Choose an option of a question; the agent gets the reason as its next message.

        Raises:
            ClientError: refused, unreachable, or the question is closed (`Conflict`).
        """
        commands, question = self._shown.app_state.commands, answer.request_id
        ids = (self._shown.replica_id, self._shown.id, question)
        if answer.patterns:
            await commands.allow_from_now_on(*ids, answer.option_id, answer.patterns)
            return
        message = answer.reason or None
        await commands.respond(*ids, option_id=answer.option_id, message=message)
        if message:
            self.remember(message)

    # waiting messages

    def change_queue(self, event: QueueView.Wanted) -> None:
        """Edit, drop, move or send again a waiting message."""
        chat = self._shown.state
        queue = chat.queue if chat else []
        queued = next((one for one in queue if str(one.id) == event.key), None)
        if queued is not None:
            self._run(partial(self._change_queued, event.action, queued), "queue")
            return
        waiting = self._shown.app_state.outbox.of_chat(self._shown.id)
        message = next((one for one in waiting if one.key == event.key), None)
        if message is not None and message.state != "sending":
            self._change_outgoing(event.action, message)

    def _change_outgoing(self, action: str, message: OutgoingMessage) -> None:
        outbox = self._shown.app_state.outbox
        match action:
            case "steer" | "join":
                self._shown.show_problem("The service does not have this message yet.")
            case "resend":
                self._run(partial(self._resend, message), "send")
            case "up" | "down":
                try:
                    if outbox.move(message, MOVES[action]):
                        self._queue.follow(message.key)
                except OSError as error:
                    self._shown.show_problem(f"not moved: {error.strerror}. Free some disk space.")
            case "edit":
                outbox.drop(message)
                if message.state == "unsent":
                    behind = None if message.behind is None else tuple(message.behind)
                    self._keep_place(QueuePlace(behind=behind, moment=message.created_at))
                draft = self.draft
                draft.attachments += [Attachment("image", image=image) for image in message.images]
                draft.attachments += [
                    Attachment("file", upload_id=upload) for upload in message.uploads
                ]
                self._take_back(message.text, message.plan_mode, message.goal_mode)
            case _:
                outbox.drop(message)

    def _keep_place(self, place: QueuePlace) -> None:
        """Note the position that the draft is sent to; of several texts the first one's position counts."""
        self.draft.place = self.draft.place or place

    def _take_back(self, text: str, plan_mode: bool = False, goal_mode: bool = False) -> None:
        self._composer.put_back(text, plan_mode, goal_mode)
        self._composer.screen.set_focus(self._composer)

    async def _resend(self, message: OutgoingMessage) -> None:
        try:
            await self._shown.app_state.outbox.resend(message)
        except ClientError as error:
            self._shown.refused("not sent", error)

    async def _change_queued(self, action: str, message: QueuedMessage) -> None:
        shown = self._shown
        commands = shown.app_state.chat_commands
        target = (shown.replica_id, shown.id, message)
        order = [one.id for one in shown.state.queue] if shown.state else []
        place = QueuePlace(
            behind=tuple(order[: order.index(message.id)] if message.id in order else ())
        )
        try:
            match action:
                case "up" | "down":
                    if await commands.move_queued(*target, MOVES[action]):
                        self._queue.follow(str(message.id))
                case "steer":
                    if await may_steer(self._queue, shown):
                        await steer(shown, shown.id, message.id)
                case "join":
                    if joined := await commands.join_queued(*target):
                        self._queue.follow(str(joined))
                    else:
                        shown.show_problem("There is no message before it to join it to.")
                case "edit" | "drop" if not await commands.dequeue(*target):
                    shown.show_problem(STARTED)
                case "edit":
                    self._keep_place(place)
                    self._take_back(message.message)
                case _:
                    pass
        except ClientError as error:
            shown.refused("queue unchanged", error)

    # files, and external programs

    def attach_upload(self, name: str, upload_id: str) -> None:
        """Attach a pending upload; it is sent with the next message, once."""
        draft = self.draft
        if all(attachment.upload_id != upload_id for attachment in draft.attachments):
            draft.attachments.append(Attachment(name, upload_id=upload_id))
        self._shown.refresh()

    def detach(self) -> None:
        """Remove all attachments."""
        self.draft.attachments = []
        self._shown.refresh()

    async def attach(self, file: FileRead) -> None:
        """Attach a file: an image in the message itself, any other file on the canvas.

        Raises:
            ClientError: it cannot be uploaded.
        """
        shown, path = self._shown, file.path
        if file.image is not None:
            self.draft.attachments.append(Attachment(path.name, image=file.image))
        else:
            upload = await shown.app_state.chat_commands.upload(
                shown.replica_id, path, file.content
            )
            if upload.upload_id is not None:
                # The message names it, so the agent knows about it.
                self.draft.attachments.append(Attachment(path.name, upload_id=upload.upload_id))
            else:
                self._composer.insert_word(one_line(upload.file_path))
        shown.refresh()

    async def attach_dropped(self, file: FileRead) -> bool:
        """Attach the image of a pasted path; False while a typed text answers a question."""
        if asks_for_text(self._shown.state) is not None:
            return False
        await self.attach(file)
        return True

    async def open_paste(self) -> None:
        """Open the folded paste at the cursor in `$PAGER`."""
        text = self._composer.paste_at_cursor
        if text is None:
            self._shown.show_problem("Put the cursor on a paste to read it.")
            return
        try:
            data = text.encode(errors="replace")
            await look_at(cast("App[Any]", self._composer.app), "paste.txt", data, pager)
        except OutsideError as error:
            self._shown.show_problem(str(error))

    async def edit_outside(self) -> None:
        """Edit the message in `$EDITOR`."""
        composer = self._composer
        before = composer.written
        # Editors want a newline at a file's end, and add one.
        whole = f"{before}\n" if before else ""
        app = cast("App[Any]", composer.app)
        try:
            text = (await edit(app, "message.md", whole, "replace")).removesuffix("\n")
        except OutsideError as error:
            self._shown.show_problem(str(error))
            return
        self._shown.problem = ""
        # A message that was refused meanwhile comes before it.
        now = composer.written
        refused = now.removesuffix(before) if now != before else ""
        composer.text = refused + text
        composer.move_cursor(composer.document.end)
        self._shown.refresh()


async def may_steer(asker: Widget, shown: ShownChat) -> bool:
    """Return whether to steer; asks where that interrupts the turn. For a worker of the caller."""
    from quarterdeck.tui.kit.dialogs import ConfirmScreen

    provider = shown.state.record.provider if shown.state else ""
    try:
        with hold_keys(asker, "Reading the agents"):
            name = await shown.app_state.chat_commands.unsteerable(provider)
    except ClientError as error:
        shown.refused("not steered", error)
        return False
    if name is None:
        return True
    return await asker.app.push_screen_wait(
        ConfirmScreen(
            "Interrupt the running turn?",
            f"{name} takes no messages while it works. Its turn is interrupted, and this message "
            "is sent next, before all others that wait.",
            "Interrupt and send",
        )
    )


async def steer(shown: ShownChat, chat_id: UUID, message_id: UUID) -> None:
    """Put a message that waits into the running turn; a refusal is shown, and it still waits."""
    try:
        await shown.app_state.chat_commands.steer(shown.replica_id, chat_id, message_id)
    except ClientError as error:
        shown.refused("not steered", error)

"""What is open, what was said of it, and what to say of every change of the state.

    AppState.changed -> Session.take -> lines -> Console
    commands -> Session -> AppState

Lines are made when a change is published, so that no state between two others is left out.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from quarterdeck.plain.console import MORE, Console
from quarterdeck.plain.replica_lines import chat_name, state_line
from quarterdeck.plain.transcript_lines import TranscriptLines, question_lines
from quarterdeck.store.app_state import AppState
from quarterdeck.store.chats import ChatState
from quarterdeck.store.notices import NoticeWatch
from quarterdeck.store.outbox import Extras, QueuePlace
from quarterdeck.store.replicas import RUNNING, ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.store.signals import (
    Change,
    ConnectionChanged,
    ListChanged,
    Noticed,
    ReplicaGone,
    TranscriptChanged,
)
from quarterdeck.store.status import Attention, ConnectionPhase
from quarterdeck.transcript.blocks import Block, UserBlock
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.chats import Delivery, MessageAccepted
from quarterdeck.wire.replicas import WorkspaceStatus

MOST_BLOCKS = 30
"""Entries of a transcript that are read at once."""
PAUSE_SECONDS = 1.0
"""After so long without more text a message's last sentence counts as complete."""
_ANSWERS = {"yes": True, "y": True, "no": False, "n": False, "": None}
FIRST = "first message"
"""Stands for the id of the message that a replica was created with."""


class CanceledError(Exception):
    """The person canceled a command while it asked something."""


@dataclass(frozen=True)
class Here:
    """Where the person is: what new replicas are made of, and where work is fetched to."""

    repository: str | None
    """Its address for the service in use."""
    directory: Path | None


class Session:
    """One person at one console."""

    def __init__(self, services: Services, console: Console, here: Here) -> None:
        self.services = services
        self.console = console
        self.here = here
        self.numbered: list[UUID] = []
        """The replicas of the last list, by which they are named."""
        self.unsent = ""
        """The prompt of a replica that could not be created."""
        self._replica_id: UUID | None = None
        self._chat_id: UUID | None = None
        self._reader: TranscriptLines | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._first: Block | None = None
        """The oldest entry that was read out."""
        self._attention: Attention | None = None
        self._phases: dict[AppState, ConnectionPhase] = {}
        self._notices = NoticeWatch()
        self._changed = asyncio.Event()
        self._pending: dict[str, bool] = {}
        """Messages whose turn has not started, and whether they were seen in the queue."""
        self._asking = False
        self._later: list[str] = []
        """Lines that come when no question is being answered."""

    @property
    def app_state(self) -> AppState:
        """The state of the service that has the open replica; without one, of the service in use."""
        return self.services.of(self._replica_id)

    @property
    def replica(self) -> ReplicaState | None:
        """The open replica."""
        return self.services.get(self._replica_id)

    @property
    def chat(self) -> ChatState | None:
        """The open chat."""
        replica = self.replica
        return replica.chats.get(self._chat_id) if replica and self._chat_id else None

    # speaking and asking

    def say(self, *lines: str) -> None:
        """Print the answer of a command."""
        self.console.say(*lines)

    def say_done(self, done: str, left: str = "") -> None:
        """Print what an operation of git did, and what it left.

        The service notes it in the history of one chat. If the replica has a single one, that note is printed instead.
        """
        is_noted = self.replica is not None and len(self.replica.chats) == 1
        if line := (left if is_noted else f"{done}{left}").strip():
            self.say(line)

    def _tell(self, *lines: str) -> None:
        """Print what has happened, but not into a dialog."""
        if self._asking:
            self._later += lines
        elif lines:
            self.console.say(*lines)

    @contextmanager
    def dialog(self) -> Generator[None]:
        """Hold back what happens while the person answers questions."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False
            later, self._later = self._later, []
            self._tell(*later)

    async def ask(self, question: str) -> str:
        """Return the answer to a question of a dialog.

        Raises:
            CanceledError: the person typed `cancel`, or the input ended.
        """
        line = await self.console.line(question)
        if line is None or line.strip() == "cancel":
            raise CanceledError
        return line.strip()

    async def ask_yes(self, question: str, usual: bool | None = None) -> bool:
        """Return whether a question of a dialog is answered with yes; Enter is `usual`, or else no.

        Raises:
            CanceledError: as `ask`.
        """
        hint = "" if usual is None else f" (Enter for {'yes' if usual else 'no'})"
        while (
            typed := (await self.ask(f"{question} yes or no{hint}:")).casefold()
        ) not in _ANSWERS:
            self.say("Type yes or no.")
        return bool(usual) if _ANSWERS[typed] is None else bool(_ANSWERS[typed])

    async def confirm(self, question: str) -> None:
        """Ask a question that takes yes or no.

        Raises:
            CanceledError: the answer is not yes.
        """
        with self.dialog():
            if not await self.ask_yes(question):
                raise CanceledError

    async def ask_number(self, question: str, most: int) -> int | None:
        """Return the number that was typed in a dialog, from 1; None for Enter.

        Raises:
            CanceledError: as `ask`.
        """
        numbers = {str(number): number for number in range(1, most + 1)}
        while typed := await self.ask(question):
            if typed in numbers:
                return numbers[typed]
            self.say(f"Type a number from 1 to {most}.")
        return None

    async def ask_which(self, question: str, names: Sequence[str], typed: str = "") -> int | None:
        """Return the index of a name or number that was `typed`, or is asked for; None for Enter.

        Raises:
            CanceledError: as `ask`.
        """
        while typed := typed or await self.ask(f"{question} which (Enter to cancel):"):
            for at, name in enumerate(names):
                if typed in (str(at + 1), name):
                    return at
            self.say(f"There is no {typed}. Type a name, or a number from 1 to {len(names)}.")
            typed = ""
        return None

    async def ask_text(self, question: str) -> str:
        """Return a text of any number of lines."""
        self.say(f"{question}, on any number of lines. End with a line that is only a dot.")
        lines: list[str] = []
        while (line := await self.console.line(MORE)) != ".":
            if line is None or (not lines and line.strip() == "cancel"):
                raise CanceledError
            lines.append(line)
        return "\n".join(lines).strip()

    async def until(self, check: Callable[[], bool]) -> None:
        """Wait until a condition holds that depends on the state."""
        while not check():
            self._changed.clear()
            await self._changed.wait()

    # following the state

    def take(self, change: Change) -> None:
        """Say what a change means. Part of `Signal`: it must be quick."""
        match change:
            case ConnectionChanged():
                self._tell(*self._connection_lines())
            case TranscriptChanged():
                self._tell(*self._transcript_lines(change))
            case ReplicaGone(replica_id=id, name=name):
                if id == self._replica_id:
                    self.close()
                self._tell(f"{name_line(name)} was deleted.")
            case Noticed(title=title, text=text):
                self._tell(f"{one_line(title)}: {one_line(text)}")
            case _:
                pass
        self._tell(*self._state_lines())
        if isinstance(change, ListChanged):
            found = self._notices.look(list(self.services.all()), self._replica_id)
            self._tell(*(f"{notice.text}." for notice in found))
        chat = self.chat
        busy = chat is not None and chat.record.processing and not chat.record.awaiting_input
        self.console.prompting = not busy
        self._changed.set()

    def _connection_lines(self) -> list[str]:
        return [line for store in self.services.stores for line in self._phase_lines(store)]

    def _phase_lines(self, store: AppState) -> list[str]:
        """Return a new phase of a connection, once: the tries between are not news."""
        connection = store.connection
        before = self._phases.get(store, ConnectionPhase.CONNECTING)
        self._phases[store] = connection.phase
        whose = f"{one_line(connection.name)}: " if self.services.several else ""
        problem = one_line(connection.problem or "")
        match connection.phase:
            case phase if phase == before:
                return []
            case ConnectionPhase.ONLINE:
                again = "" if before == ConnectionPhase.CONNECTING else " again"
                return [f"{whose}Connected{again}."]
            case ConnectionPhase.RECONNECTING:
                return [f"{whose}Not connected: {problem} Trying again; agents keep running."]
            case ConnectionPhase.STOPPED:
                return [f"{whose}{problem} Start it with: qd serve."]
            case ConnectionPhase.REFUSED:
                return [f"{whose}{problem}"]
            case _:
                return []

    def _transcript_lines(self, change: TranscriptChanged) -> Sequence[str]:
        chat, reader = self.chat, self._reader
        if chat is None or reader is None or change.chat_id != chat.id or chat.transcript is None:
            return ()
        if change.fold is not None:
            lines = reader.take(change.fold)
            self._await_pause()
            return lines
        if chat.transcript is reader.transcript:
            return ()
        self._reader = reader.continued_in(chat.transcript)
        self._first = self._reader.same_block(self._first)
        return self._reader.read(chat.transcript.blocks)

    def _await_pause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        if self._reader is not None and self._reader.waits:
            loop = asyncio.get_running_loop()
            self._pause = loop.call_later(PAUSE_SECONDS, self._paused)

    def _paused(self) -> None:
        if self._reader is not None:
            self._tell(*self._reader.paused())

    def _state_lines(self) -> list[str]:
        replica = self.replica
        if replica is None or self._reader is None:
            return []
        before, self._attention = self._attention, replica.attention
        if before == self._attention:
            return []
        chat = self.chat
        if self._attention == Attention.ASKS and chat is not None and chat.record.awaiting_input:
            return []  # the question itself was read
        return self.state_lines(replica)

    def state_lines(self, replica: ReplicaState) -> list[str]:
        """Return what a replica is doing, and what can be done about it."""
        lines = [state_line(replica)]
        if replica.attention == Attention.PLAN:
            lines.append("Type accept, or a message that says what to change.")
        if replica.attention == Attention.ASKS:
            lines += [
                f"Type chat {number} for its question."
                for number, chat in enumerate(replica.ordered_chats, 1)
                if chat.record.awaiting_input and chat.id != self._chat_id
            ]
        return lines

    # opening

    async def greet(self) -> None:
        """Wait for the list of the service in use, and for the states of the replicas that are running.

        Commands from a pipe wait for the lists of all services that answer.
        """
        services, current = self.services, self.services.current
        enough = current if self.console.interactive else services
        await self.until(lambda: (enough.listed or services.listed) and services.online)
        running = [state for state in services.all() if state.status in RUNNING]
        await asyncio.gather(
            *(store.commands.read_resting(own) for store, own in services.by_store(running))
        )

    async def open(self, replica: ReplicaState, chat_id: UUID | None = None) -> None:
        """Open a replica at a chat, or the one that asks or was shown last, and read its last turn out.

        Raises:
            ClientError: its history could not be read.
        """
        self.close()
        app_state = self.services.of(replica.id)
        self.services.look_at(replica.id)

        def gone() -> bool:
            return replica.id not in app_state.replicas

        await self.until(lambda: gone() or replica.chat_to_show is not None)
        chat = (replica.chats.get(chat_id) if chat_id else None) or replica.chat_to_show
        if gone() or chat is None:
            return
        # Lines that were said are not said again with another name.
        await app_state.read_agent_name(chat.record.provider)
        await app_state.commands.open_chat(replica.id, chat.id)
        await self.until(lambda: gone() or chat.transcript is not None)
        if gone() or chat.transcript is None:
            return
        self._replica_id, self._chat_id = replica.id, chat.id
        replica.shown_chat = chat.id
        self._pending.clear()
        self._attention = replica.attention
        self._reader = TranscriptLines(chat.transcript, self.agent_of(chat))
        self._read_out(replica, chat)
        self._await_pause()
        app_state.seen(replica)

    def _read_out(self, replica: ReplicaState, chat: ChatState) -> None:
        reader = self._reader
        assert reader is not None
        blocks = reader.transcript.blocks
        start = _start_of_turn(blocks, len(blocks))
        self._first = blocks[start] if start < len(blocks) else None
        reader.skip_before(self._first)
        several = len(replica.chats) > 1
        where = f"chat {replica.ordered_chats.index(chat) + 1}, " if several else ""
        self.say(
            f"Opened {name_line(replica.full_name)}, {where}{chat_name(chat, self.agent_of(chat))}."
        )
        if start or chat.has_older:
            self.say("Type earlier for what came before.")
        self.say(*reader.read(list(blocks[start:])))
        questions = chat.open_questions
        if questions and questions[0] not in blocks[start:]:
            self.say(*self.question_lines())
        for message in self.app_state.outbox.of_chat(chat.id):
            unsure = message.state == "unsure"
            why = "May not have arrived (type resend or drop)" if unsure else "Not sent yet"
            self.say(f"{why}: {message.text}")
        if not questions:
            self.say(*self.state_lines(replica))

    def question_lines(self) -> list[str]:
        """Return the question that waits in the open chat."""
        chat = self.chat
        question = next(iter(chat.open_questions), None) if chat else None
        if chat is None or chat.transcript is None or question is None:
            return []
        tool = chat.transcript.tool(question.tool_id) if question.tool_id else None
        return question_lines(question, tool, self.agent_of(chat))

    def agent_of(self, chat: ChatState) -> str:
        """Return the name of a chat's agent."""
        return one_line(self.app_state.agent_name(chat.record.provider))

    def close(self) -> None:
        """Leave the open replica. Nothing in it ends."""
        self._replica_id = self._chat_id = self._reader = self._first = None
        self._attention = None
        self.services.look_at(None)

    async def earlier(self) -> list[str]:
        """Return the lines before those that were read out; empty at the beginning.

        Raises:
            ClientError: the history could not be read.
        """
        replica, chat, reader = self.replica, self.chat, self._reader
        if replica is None or chat is None or reader is None or self._first is None:
            return []
        if reader.transcript.position(self._first.id) == 0:
            await self.app_state.commands.load_older(replica.id, chat.id)
        blocks = reader.transcript.blocks
        end = reader.transcript.position(self._first.id) or 0
        if not end:
            return []
        start = _start_of_turn(blocks, end)
        self._first = blocks[start]
        again = TranscriptLines(reader.transcript, reader.agent)
        return again.read(list(blocks[start:end]))

    # messages

    async def send(
        self, text: str, *, approves: bool = False, place: QueuePlace | None = None
    ) -> MessageAccepted | None:
        """Send a message to the open chat; while a plan waits it asks for another one.

        Args:
            approves: it approves the plan instead.
            place: its place in the queue; by default it is last.

        Returns:
            The service's answer; None when there is none yet, which is said.

        Raises:
            ClientError: the service refused it.
            OSError: it cannot be saved to disk, so it was not sent.
        """
        replica, chat = self.replica, self.chat
        if replica is None or chat is None:
            return None
        outbox = self.app_state.outbox
        accepted = await outbox.send(
            replica.id,
            chat.id,
            text,
            plan_mode=chat.plan_waits and not approves,
            extras=Extras(model=chat.model, place=place),
        )
        if accepted is not None:
            self.expect(str(accepted.message_id))
            if place is None:
                self.say(*_delivery_lines(accepted))
        elif any(message.state == "unsure" for message in outbox.of_chat(chat.id)):
            self.say("The connection broke: the message may not have arrived. Type resend or drop.")
        else:
            self.say("Not connected: the message is kept, and sent when the connection is back.")
        return accepted

    def expect(self, message_id: str) -> None:
        """Note a message whose turn is still to come."""
        self._pending[message_id] = False

    def forget(self, message_id: str) -> None:
        """Note that a message will have no turn of its own."""
        self._pending.pop(message_id, None)

    def is_settled(self) -> bool:
        """Whether nothing goes on in the open chat, or it needs the person."""
        replica, chat = self.replica, self.chat
        if replica is None or chat is None or replica.status == WorkspaceStatus.ERROR:
            return True
        if replica.asks:
            return True
        waiting = self._unstarted(chat) or self.app_state.outbox.of_chat(chat.id) or chat.queue
        busy = chat.record.processing or replica.status == WorkspaceStatus.PREPARING
        return not (busy or waiting)

    def _unstarted(self, chat: ChatState) -> bool:
        blocks = chat.transcript.blocks if chat.transcript else ()
        started = {block.message_id for block in blocks if isinstance(block, UserBlock)}
        queued = {str(entry.id) for entry in chat.queue}
        for id, was_queued in list(self._pending.items()):
            # One that has left the queue has started, or was taken out of it.
            if id in started or (id == FIRST and started) or (was_queued and id not in queued):
                del self._pending[id]
            else:
                self._pending[id] = was_queued or id in queued
        return bool(self._pending)


def _start_of_turn(blocks: Sequence[Block], end: int) -> int:
    """Return where to begin to read up to an entry: at a message, if it is not too far."""
    first = max(0, end - MOST_BLOCKS)
    for at in range(end - 1, first - 1, -1):
        if isinstance(blocks[at], UserBlock):
            return at
    return first


def _delivery_lines(accepted: MessageAccepted) -> list[str]:
    match accepted.status:
        case Delivery.QUEUED:
            return [f"Queued after the running turn, number {accepted.position}."]
        case Delivery.WAKING:
            return ["Accepted: it is delivered when the replica is ready."]
        case _:
            return []

"""The right side of the main screen: one replica's head line, its chat and its terminals; or a text.

The pane follows the list's cursor. A replica that was not shown before is read first, and the previous
one stays meanwhile: one picture is sent, not an empty one and then a full one.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.style import Style as ContentStyle
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.store.signals import (
    AutomationsChanged,
    Change,
    ChatChange,
    ConnectionChanged,
    ListChanged,
    ReplicaChanged,
    ReplicaGone,
    TranscriptChanged,
)
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import PALETTE, action_named, keyed, shown_key
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.tabs import CHAT, GetHost, TabPane, kind_of, tabs_beside
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.lines import ACTION, HeadLine, Note, RareText
from quarterdeck.tui.widgets.tab_bar import Switcher, TabBar
from quarterdeck.wire.replicas import WorkspaceStatus


class ReplicaPane(Vertical):
    """One replica. A tab's pane is created when it is first shown, and kept."""

    DEFAULT_CSS = """
    ReplicaPane {
        & Switcher { height: 1fr; }
        & #unisolated { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, app_state: AppState, host: GetHost, replica_id: UUID) -> None:
        super().__init__()
        self._app_state = app_state
        self._host = host
        self.replica_id = replica_id
        self.tab = CHAT
        self._head = HeadLine()
        self._unisolated = RareText(id="unisolated")
        self._chat_made = asyncio.Event()
        self._tabs = Switcher(initial="note")
        self.parts_ready = asyncio.Event()
        """Set when its first parts exist: until then nothing else may show or remove any."""

    def compose(self) -> ComposeResult:
        yield self._head
        yield TabBar(id="tabs")
        with self._tabs:
            yield Note("reading …", id="note")

    async def on_mount(self) -> None:
        try:
            await self.show_state()
        finally:
            self.parts_ready.set()

    @property
    def chat(self) -> ChatPane | None:
        """The chat, once the replica's record has been read."""
        return next((child for child in self._tabs.children if isinstance(child, ChatPane)), None)

    @property
    def panes(self) -> list[TabPane]:
        """The panes that were shown, besides the chat."""
        return [child for child in self._tabs.children if isinstance(child, TabPane)]

    def pane(self, name: str) -> TabPane | None:
        """Return a tab's pane, once it was shown."""
        return next((pane for pane in self.panes if pane.id == name), None)

    async def show_state(self) -> None:
        """Show the replica as the store has it."""
        state = self._app_state.replicas.get(self.replica_id)
        if state is None or not self.query(HeadLine):  # closed before its parts were created
            return
        self.show_head()
        self._show_tabs()
        unisolated = state.unisolated
        reason = f"Not isolated: {one_line(unisolated)}" if unisolated is not None else ""
        self._unisolated.show_text(reason, after=self._head)
        for pane in self.panes:
            # A hidden one is updated when it is shown again; only terminals,
            # which end and start with their engine, follow it all the time.
            if pane.id == self.tab or pane.follows_hidden:
                pane.show_state()
        first = state.chat_to_show
        if self.chat is not None:
            self.chat.show_state()
        elif first is not None:
            pane = ChatPane(self._app_state, self.replica_id, first.id)
            pane.id = CHAT
            if await self._tabs.bring(pane, show=self.tab == CHAT):
                self._chat_made.set()

    def show_head(self) -> None:
        """Show the head line as the store has the replica."""
        state = self._app_state.replicas.get(self.replica_id)
        if state is not None:
            self._head.show(state, self._app_state.agent_name(state.agent))

    def _show_tabs(self) -> None:
        state = self._app_state.replicas.get(self.replica_id)
        waits = state is not None and (state.asks or state.plans)
        tabs = tabs_beside(self.tab, chat_waits=waits)
        self.query_one("#tabs", TabBar).show(tabs, self.tab)

    def come_online(self) -> None:
        """Note that the connection is back."""
        if self.chat is not None:
            self.chat.come_online()
        for pane in self.panes:
            pane.come_online()

    async def show(self, tab: str) -> None:
        """Show a tab, and focus it."""
        before, self.tab = self.pane(self.tab), tab
        switcher = self._tabs
        kind = kind_of(tab)
        if kind is not None and self.pane(tab) is None:
            pane = kind.make(self._app_state, self._host, self.replica_id)
            pane.id = tab
            if not await switcher.bring(pane):
                return
        switcher.current = tab if switcher.query(f"#{tab}") else "note"
        self._show_tabs()
        now = self.pane(tab)
        if before is not None and before is not now:
            before.hidden()
        if now is not None:
            now.shown()
            now.show_state()
        self.focus_tab()

    def focus_tab(self) -> None:
        """Focus the visible part, as soon as it exists."""
        self.workers.cancel_group(self, "focus")
        if (pane := self.pane(self.tab)) is not None:
            pane.take_keys()
        elif self.chat is not None:
            self._enter_chat(self.chat)
        else:
            self.screen.set_focus(self.query_one("#note", Note))
            self._focus_chat()

    @work(group="focus")
    async def _focus_chat(self) -> None:
        """Hold keys until the replica's record, and so the chat, is there."""
        with hold_keys(self, "Reading the chat"):
            await self._chat_made.wait()
            if self.chat is not None:
                self._enter_chat(self.chat)

    @on(TabPane.Mentioned)
    async def _mentioned(self, event: TabPane.Mentioned) -> None:
        event.stop()
        if self.chat is not None:
            self.chat.composer.insert_word(event.text)
            if event.upload is not None:
                self.chat.messages.attach_upload(*event.upload)
            await self.show(CHAT)
            self.screen.set_focus(self.chat.writing_target)

    def _enter_chat(self, chat: ChatPane) -> None:
        state = self._app_state.replicas.get(self.replica_id)
        if state is not None and state.status == WorkspaceStatus.ERROR:
            # There w retries, as the note above the composer says.
            self.screen.set_focus(chat.transcript)
        else:
            chat.enter()

    @on(HeadLine.Chosen)
    async def _fact_chosen(self, event: HeadLine.Chosen) -> None:
        event.stop()
        if not event.action.startswith(("chat.", "info.")) and not self.has_focus_within:
            self.focus_tab()  # the list's cursor may be on another replica, which is being read
        node = self.chat if event.action.startswith("chat.") else self.screen
        if node is not None:
            await self.app.run_action(action_named(event.action).method, default_namespace=node)

    @on(TabBar.Chosen, "#tabs")
    async def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        await self.show(event.key)


@dataclass
class PendingUpdate:
    """The visible changes since the last frame."""

    listing: bool = False
    connection: bool = False
    replica: bool = False
    folds: list[TranscriptChanged] = field(default_factory=list[TranscriptChanged])
    removed: list[ReplicaGone] = field(default_factory=list[ReplicaGone])

    def add(self, change: Change, shown: UUID | None) -> bool:
        """Add a change; return False when nothing of it is visible. `shown` is the replica shown."""
        match change:
            case ListChanged() | AutomationsChanged():
                self.listing = True
            case ConnectionChanged():
                self.connection = True
            case ReplicaGone():
                self.removed.append(change)
            case TranscriptChanged() if change.replica_id == shown:
                self.folds.append(change)
            case ReplicaChanged() | ChatChange() if change.replica_id == shown:
                self.replica = True
            case _:
                return False
        return True


DWELL_SECONDS = 2.0
"""Time for which a replica has to be shown to count as seen without being opened."""
RESTING = 0.12
"""Seconds between two moves of the cursor below which it is still moving."""
SETTLE_SECONDS = 0.15
"""Seconds that reading a replica may take before its empty pane is shown."""
CHOOSE = "No replica selected."
LONGEST_PATH = 28
"""Characters of the current directory's path, and of a line of agents, in the hint of the first start."""
INDENT = " " * 20
"""Text before the second column of the hint."""
FIRST_START = """Run and supervise coding agents in sandboxes.

{replica.new}  Create replica   {directory}
   Agents           {agents}
{page.environments}  Environments     variables, hooks, skills, MCP
{page.automations}  Automations      schedules and webhooks
{page.settings}  Settings         agents, keys, theme
{app.help}  Keys of this screen
{app.quit}  Quit

Quitting never stops an agent: qd comes back here."""

_KEY = re.compile(r"\{([a-z.-]+)\}")


def agents_words(usable: Sequence[str], others: int) -> str:
    """Return the agents of the hint, on as many lines as fit beside its labels in 80 columns."""
    lines = [""]
    for word in [
        *(f"✓ {name}" for name in usable),
        *([f"· {others} not available"] if others else []),
    ]:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LONGEST_PATH:
            lines.append(word.removeprefix("· "))
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return f"\n{INDENT}".join(lines)


def first_start(hint: str) -> Content:
    """Return the hint of the first start; a line that begins with a key has the action of it."""
    lines: list[str | Content] = []
    for line in hint.splitlines(keepends=True):
        found = _KEY.match(line)
        if found is None:
            lines.append(line)
            continue
        action = action_named(found[1])
        key = shown_key(action) or PALETTE
        words = Content.assemble((key, "bold $text-accent"), line[found.end() :])
        lines.append(words.stylize(ContentStyle.from_meta({ACTION: action.method})))
    return Content.assemble(*lines)


class Words(Static):
    """A text in the place of a replica. A click on a line with an action carries it out."""

    async def on_click(self, event: Click) -> None:
        if (action := event.style.meta.get(ACTION)) is not None:
            await self.screen.run_action(action)


class ReplicaHolder(Vertical):
    """Holds the `ReplicaPane` that is shown, at most one."""

    DEFAULT_CSS = """
    ReplicaHolder {
        width: 1fr;
        & #words { padding: 1 2; color: $text-muted; }
    }
    """

    class Shown(Message):
        """Another replica is shown than before, or none."""

    def __init__(self, services: Services, host: GetHost) -> None:
        super().__init__(id="main")
        self._services = services
        self._host = host
        self._lock = asyncio.Lock()
        """Keys, timers and frames come from different queues: none of them may see half a pane."""
        self._moved_at = 0.0
        self._wanted: UUID | None = None
        self._reading = False
        self._is_first = False
        """Whether the hint of the first start is shown."""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield _words(keyed(CHOOSE))

    def on_mount(self) -> None:
        self._stop_watching = self._services.changed.watch(self._note_change)

    def on_unmount(self) -> None:
        self._stop_watching()

    def show_hint(self) -> None:
        """Say how to begin while there is no replica, in the place of one."""
        if not self._services.listed or self.pane is not None:
            return
        is_first = next(self._services.all(), None) is None
        if is_first and not self._is_first:
            self._read_agents()
        elif self._is_first and not is_first:
            self._put_words(keyed(CHOOSE))
        self._is_first = is_first

    @work(exclusive=True, group="agents")
    async def _read_agents(self) -> None:
        directory = self._services.current.directory
        where = one_line(str(directory)) if directory else "from a path or git URL"
        if len(where) > LONGEST_PATH:
            where = f"…{where[-LONGEST_PATH:]}"
        words = FIRST_START.replace("{directory}", where)
        self._put_words(first_start(words.replace("{agents}", "…")))
        try:
            agents = await self._services.current.chat_commands.agents()
        except ClientError as error:
            found = one_line(str(error))
        else:
            usable = [one_line(agent.id) for agent in agents if agent.available]
            found = agents_words(usable, len(agents) - len(usable))
        self._put_words(first_start(words.replace("{agents}", found)))

    def _put_words(self, text: str | Content) -> None:
        for words in self.query("#words").results(Static):
            words.update(text)

    @property
    def pane(self) -> ReplicaPane | None:
        """The replica that is shown."""
        # Called with every event of a stream: so not by a search through all widgets.
        return next((child for child in self.children if isinstance(child, ReplicaPane)), None)

    async def show(self, replica_id: UUID) -> ReplicaPane:
        """Return the pane of a replica that the user opened, created if another one is shown."""
        pane = await self._show(replica_id)
        self._services.mark_shown_as_seen()
        return pane

    def dwell(self) -> None:
        """Mark the replica that is shown as seen, if the user looks at it for a moment.

        A cursor that passes, or the start of the program, shows it only.
        """
        self.set_timer(DWELL_SECONDS, partial(self._seen_if_shown, self._services.on_screen))

    def _seen_if_shown(self, replica_id: UUID | None) -> None:
        if replica_id is not None and self._services.on_screen == replica_id:
            self._services.mark_shown_as_seen()

    async def _show(self, replica_id: UUID) -> ReplicaPane:
        self._want(None)
        async with self._lock:
            pane = self.pane
            if pane is None or pane.replica_id != replica_id:
                store = self._services.of(replica_id)
                pane = ReplicaPane(store, self._host, replica_id)
                await self._replace(pane)
        self._services.look_at(replica_id)
        self.post_message(self.Shown())
        return pane

    async def say(self, words: str = "") -> None:
        """Show a text and no replica: when there is none, how to choose one."""
        self._want(None)
        async with self._lock:
            await self._replace(_words(words or keyed(CHOOSE)))
        self.post_message(self.Shown())

    async def follow(self, replica_id: UUID | None) -> None:
        """Note that the cursor moved to a replica, or to none. A pane that has the focus stays."""
        self._want(replica_id)
        if replica_id is None:
            if not self.has_focus_within:
                await self.say()
            return
        now = monotonic()
        if now - self._moved_at < RESTING:
            # A key is held down: the pane waits for the cursor to rest.
            self._after(RESTING, self._arrive)
        else:
            await self._arrive()
        self._moved_at = now

    def cover(self, is_covered: bool) -> None:
        """Note that the list covers the replica, so that its news are unseen, or that it no longer does."""
        self._want(None)
        pane = None if is_covered else self.pane
        self._services.look_at(pane.replica_id if pane is not None else None)

    async def take(self, frame: PendingUpdate) -> None:
        """Update the replica that is shown after a change of the store."""
        async with self._lock:
            if (pane := self.pane) is None:
                return
            await pane.parts_ready.wait()
            if frame.replica or frame.connection:
                await pane.show_state()
            if frame.connection and self._services.of(pane.replica_id).online:
                pane.come_online()
            if frame.folds:
                pane.show_head()  # the plan of the turn may have advanced
            if (chat := pane.chat) is None:
                return
            chat.take([change for change in frame.folds if change.chat_id == chat.chat_id])

    def _note_change(self, change: Change) -> None:
        if not self._reading or not isinstance(change, ReplicaChanged | ChatChange):
            return
        if change.replica_id == self._wanted and (state := self._awaited) and state.presentable:
            self._reading = False
            self.call_later(self._show_wanted)

    @property
    def _awaited(self) -> ReplicaState | None:
        return self._services.get(self._wanted)

    def _want(self, replica_id: UUID | None) -> None:
        self._wanted = replica_id
        self._reading = False
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _after(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        # Not in the timer itself, which is stopped, together with its callback, when that is done.
        self._timer = self.set_timer(seconds, lambda: self.call_later(do))

    async def _arrive(self) -> None:
        state = self._awaited
        if state is None or self.has_focus_within:
            return
        if state.presentable or not self._services.of(state.id).online:
            await self._show(state.id)
            self.dwell()
        else:
            self._read(state)

    def _read(self, state: ReplicaState) -> None:
        self._reading = True
        self._services.look_at(state.id)
        self._after(SETTLE_SECONDS, self._show_wanted)

    async def _show_wanted(self) -> None:
        state, pane = self._awaited, self.pane
        if state is not None and not self.has_focus_within:
            await self._show(state.id)
            self.dwell()
            return
        if pane is not None and self._services.on_screen != pane.replica_id:
            # The user went to work in the pane while the other was read.
            self._services.look_at(pane.replica_id)
        self._want(None)

    async def _replace(self, content: Widget) -> None:
        if (pane := self.pane) is not None:
            await pane.parts_ready.wait()
        if not self.app.is_running:
            # The cockpit is closing: a widget mounted now never starts, so it cannot be removed.
            return
        # One frame for both, and none of a widget that has left the screen already.
        with self.app.batch_update():
            await self.remove_children()
            await self.mount(content)


def _words(text: str) -> Static:
    return Words(text, id="words", markup=False)

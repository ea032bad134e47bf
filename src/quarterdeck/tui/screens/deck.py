"""The main screen: the list of replicas, and the one that is being worked with.

    Deck.changed -> Frame (once per refresh) -> list, status line, pane

Below 60 columns one of the two is shown at a time: the one that has the focus.
"""

from pathlib import Path
from time import monotonic
from typing import ClassVar
from uuid import UUID

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.store.changes import Change, Noticed, ReplicaGone, TranscriptChanged
from quarterdeck.store.connection import Phase
from quarterdeck.store.deck import Deck
from quarterdeck.store.narrowing import Narrowing
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import Where, bindings, brief_keys
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.panes.replica import ReplicaPane
from quarterdeck.tui.panes.tab_kinds import CHAT
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.screens.beside import Beside
from quarterdeck.tui.screens.commands import CommandScreen
from quarterdeck.tui.screens.deeds import pointless
from quarterdeck.tui.screens.frame import Frame
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import drop_keys, hold_keys, release_keys
from quarterdeck.tui.widgets.info.panel import InfoPanel
from quarterdeck.tui.widgets.key_line import KeyLine
from quarterdeck.tui.widgets.narrow_line import NarrowLine
from quarterdeck.tui.widgets.page_links import PageLinks
from quarterdeck.tui.widgets.placed import PlaceChanged, place_of
from quarterdeck.tui.widgets.replica_list import ReplicaList
from quarterdeck.tui.widgets.status_line import StatusLine

WELCOME = (
    "No replicas yet.\nPress {replica.new} to create one:\na sandbox with your\n"
    "repository and an agent."
)
STREAM_SECONDS = 1 / 20
"""Between two frames of what an agent says: more of them are not read, and keys wait for each."""
NONE_SHOWN = "None is like this.\n{list.everything} shows all."


class DeckScreen(CommandScreen):
    """List, pane, status line and key line."""

    DEFAULT_CSS = """
    DeckScreen {
        & #body { height: 1fr; }
        & #side { width: 26; border-right: solid $panel-lighten-2; }
        & #banner {
            height: auto;
            max-height: 3;
            background: $error-muted;
            color: $text-error;
            padding: 0 1;
            display: none;
        }
        &.-narrow #side { width: 1fr; border-right: none; }
        &.-narrow #main { display: none; }
        &.-narrow.in-pane #side { display: none; }
        &.-narrow.in-pane #main { display: block; }
        &.-wide #side { width: 34; }
        & InfoPanel { display: none; }
        &.-wide.with-info InfoPanel { display: block; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (120, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Where.LIST),
        *bindings(Where.TABS),
        *bindings(Where.ANYWHERE),
    ]
    AUTO_FOCUS = "ReplicaList"

    def __init__(self, deck: Deck, host: EmulatorHost, directory: Path | None) -> None:
        super().__init__(deck, directory)
        self._beside = Beside(deck, host)
        self._frame = Frame()
        self._scheduled = False
        self._shown_at = 0.0
        self._with_info = True

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield Static(id="banner", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield NarrowLine()
                yield ReplicaList()
                yield PageLinks()
            yield self._beside
            yield InfoPanel(self._deck)
        yield KeyLine()

    def on_mount(self) -> None:
        self._stop_watching = self._deck.changed.watch(self._changed)
        self._show_list()

    def on_unmount(self) -> None:
        self._stop_watching()

    def on_screen_resume(self) -> None:
        """No page is before it any more."""
        self._deck.come_back()

    # what the store tells

    def _changed(self, change: Change) -> None:
        if isinstance(change, Noticed):
            self._notice(change)
            return
        pane = self.pane
        if not self._frame.add(change, pane.replica_id if pane else None):
            return
        if self._scheduled:
            return
        self._scheduled = True
        rest = self._shown_at + STREAM_SECONDS - monotonic()
        if isinstance(change, TranscriptChanged) and rest > 0:
            self.set_timer(rest, self._show_frame)
        else:
            self.call_after_refresh(self._show_frame)

    async def _show_frame(self) -> None:
        self._scheduled = False
        self._shown_at = monotonic()
        frame, self._frame = self._frame, Frame()
        for gone in frame.gone:
            await self._say_gone(gone)
        if frame.listing or frame.connection:
            self._show_list()
        if frame.connection:
            self._show_banner()
        if frame.connection and self._deck.online:
            self.info.come_online()
        self._show_info()
        await self._beside.take(frame)

    def _show_list(self) -> None:
        states = self._deck.ordered()
        welcome = keyed(NONE_SHOWN if states else WELCOME)
        self.listing.empty = welcome if self._deck.listed else ""
        self.listing.show(self._deck.narrowed(states))
        self.listing.unmark(self.listing.marked - self._deck.replicas.keys())
        self.query_one(StatusLine).show(self._deck.connection, states)
        self.query_one(PageLinks).show(self._deck.automations.summary().words)
        self._show_narrowing()

    @on(ReplicaList.MarksChanged)
    def _show_narrowing(self) -> None:
        listing, line = self.listing, self.query_one(NarrowLine)
        line.show(listing.count, len(self._deck.replicas), len(listing.marked))
        self._show_keys()

    def _show_info(self) -> None:
        """The panel beside the replica, where there is room for it and it is wanted."""
        pane = self.pane
        state = self._deck.replicas.get(pane.replica_id) if pane else None
        self.set_class(self._with_info and state is not None, "with-info")
        if state is not None:
            self.info.show(state)

    def _show_banner(self) -> None:
        banner = self.query_one("#banner", Static)
        connection = self._deck.connection
        banner.display = connection.problem is not None
        if connection.problem is None:
            return
        comfort = keyed("Nothing typed is lost: {app.reconnect} tries again now.")
        if connection.phase == Phase.REFUSED:
            comfort = keyed("{app.reconnect} tries again.")
        banner.update(one_line(f"{connection.problem} {comfort}"))

    async def _say_gone(self, gone: ReplicaGone) -> None:
        pane = self.pane
        if pane is None or pane.replica_id != gone.replica_id:
            return
        name = one_line(gone.name)
        if gone.elsewhere:
            self.tell("warning", name, "It was deleted elsewhere, with all its files.")
        if self._inside(pane) or self.focused is None:
            self.action_to_list()
        await self._beside.say(f"{name} was deleted.")

    def _notice(self, notice: Noticed) -> None:
        self.tell(notice.severity, notice.title, notice.text)

    # where the person is

    @property
    def listing(self) -> ReplicaList:
        return self.query_one(ReplicaList)

    @property
    def info(self) -> InfoPanel:
        return self.query_one(InfoPanel)

    @property
    def pane(self) -> ReplicaPane | None:
        """The replica that is shown beside the list."""
        return self._beside.pane

    @property
    def chosen(self) -> ReplicaState | None:
        """The replica that keys mean: the one worked in, else the one under the cursor."""
        pane = self.pane
        if pane is not None and self._inside(pane):
            return self._deck.replicas.get(pane.replica_id)
        selected = self.listing.selected
        return self._deck.replicas.get(selected) if selected else None

    @property
    def meant(self) -> list[ReplicaState]:
        """Part of `CommandScreen`."""
        marked = self.listing.marked
        if marked and self.where is Where.LIST:
            return [state for state in self._deck.ordered() if state.id in marked]
        return [state] if (state := self.chosen) is not None else []

    def _inside(self, pane: Widget) -> bool:
        return self.focused is not None and pane in self.focused.ancestors

    @property
    def where(self) -> Where:
        """What has the focus, for help and the key line."""
        nothing = Where.LIST if self.focused is None else Where.CHAT
        return place_of(self.focused, nothing)

    def watch_focused(self, focused: Widget | None) -> None:
        """In a narrow window the part with the focus is the one shown."""
        if focused is not None:
            self.set_class(not self._in_side(focused), "in-pane")
        elif self.is_mounted:
            self.call_after_refresh(self._find_focus)
        if self.is_mounted:
            self._show_keys()

    def _in_side(self, focused: Widget) -> bool:
        return any(node.id == "side" for node in focused.ancestors)

    def _find_focus(self) -> None:
        """Nothing has the keys, and no other window does: the list takes them."""
        app_focus: bool = self.app.app_focus
        if self.focused is None and self.is_current and app_focus:
            self.set_focus(self.listing)

    @on(PlaceChanged)
    def _show_keys(self) -> None:
        keys = brief_keys(self.where, without=pointless(self.meant))
        self.query_one(KeyLine).show(keys)

    @on(Beside.Shown)
    def _pane_shown(self) -> None:
        self._show_info()
        self._show_keys()

    async def show_replica(self, replica_id: UUID) -> ReplicaPane:
        """The pane of a replica, made if another one is shown."""
        return await self._beside.show(replica_id)

    @on(ReplicaList.Opened)
    async def _opened(self, event: ReplicaList.Opened) -> None:
        await self._open(event.replica_id)

    async def _open(self, replica_id: UUID) -> None:
        hold_keys(self)
        pane = await self.show_replica(replica_id)
        self.add_class("in-pane")
        pane.focus_tab()

    @on(ReplicaList.Highlighted)
    async def _highlighted(self, event: ReplicaList.Highlighted) -> None:
        self._show_keys()
        replica_id = event.replica_id
        if replica_id != self.listing.selected or self.has_class("-narrow"):
            return
        await self._beside.follow(replica_id)

    @on(TabPane.Left)
    async def _tab_left(self, event: TabPane.Left) -> None:
        if event.to != "list" and self.pane is not None:
            await self.pane.show(event.to)
        else:
            self.action_to_list()

    @on(NarrowLine.Changed)
    def _narrow(self, event: NarrowLine.Changed) -> None:
        self._deck.narrow(Narrowing.of(event.typed))
        # Not with the next frame: a key that comes behind means what is shown then.
        self._show_list()

    @on(NarrowLine.Left)
    def _to_list_again(self) -> None:
        self.set_focus(self.listing)
        release_keys(self)

    def action_narrow(self) -> None:
        self.query_one(NarrowLine).start()

    def action_everything(self) -> None:
        self.listing.unmark(self.listing.marked)
        self.query_one(NarrowLine).action_all()

    def action_mark(self) -> None:
        self.listing.action_mark()

    def action_mark_all(self) -> None:
        self.listing.action_mark_all()

    # actions that move the focus; those that change a replica are in the base class

    def action_to_list(self) -> None:
        pane = self.pane
        self.set_focus(self.listing)
        if pane is not None:
            self.listing.select(pane.replica_id)
        release_keys(self)

    async def action_open(self) -> None:
        if (state := self.chosen) is not None:
            await self._open(state.id)

    async def action_show(self, tab: str) -> None:
        if (state := self.chosen) is None:
            return
        hold_keys(self)
        pane = await self.show_replica(state.id)
        self.add_class("in-pane")
        await pane.show(tab)

    async def go_to(self, replica_id: UUID) -> None:
        """Works with a replica, wherever the person was before."""
        if replica_id in self._deck.replicas:
            self.listing.select(replica_id)
            await self._open(replica_id)
        else:
            drop_keys(self)

    @on(PageLinks.Chosen)
    async def _page_chosen(self, event: PageLinks.Chosen) -> None:
        await self.run_action(event.method)

    def action_page(self, name: str) -> None:
        """Opens one of `PAGES` over the deck."""
        from quarterdeck.tui.screens.pages import PAGES

        hold_keys(self)
        self.app.push_screen(PAGES[name](self._deck), self._page_left)

    async def _page_left(self, to: UUID | None) -> None:
        if to is None or to not in self._deck.replicas:
            release_keys(self)
            return
        self.listing.select(to)
        await self._open(to)

    async def action_write(self) -> None:
        chat = self.pane.chat if self.pane else None
        if chat is not None and self._inside(chat):
            self.set_focus(chat.writing_target)
        else:
            await self.action_show(CHAT)

    def action_toggle_info(self) -> None:
        if self.focused is self.info:
            self.action_from_info()
        self._with_info = not self._with_info
        self._show_info()

    def action_to_info(self) -> None:
        if not self.has_class("-wide"):
            self.tell("information", "Info panel", "It is shown from 120 columns on.")
        elif self.pane is not None:
            self._with_info = True
            self._show_info()
            self.set_focus(self.info)

    def action_from_info(self) -> None:
        if self.pane is not None:
            self.pane.focus_tab()

    def action_to_transcript(self) -> None:
        if (chat := self.pane.chat if self.pane else None) is not None:
            self.set_focus(chat.transcript)

    def action_to_queue(self) -> None:
        if (chat := self.pane.chat if self.pane else None) is not None:
            self.set_focus(chat.queue if chat.queue.actionable else chat.transcript)

    def action_next_part(self) -> None:
        if (chat := self.pane.chat if self.pane else None) is not None:
            self.set_focus(chat.queue if chat.queue.actionable else chat.writing_target)

"""The main screen: the list of replicas, and the current one.

    AppState.changed -> Frame (once per refresh) -> list, status line, pane

Below 60 columns only the one with the focus is shown.
"""

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget

from quarterdeck.store.list_view import Grouping
from quarterdeck.store.replica_list import ReplicaFilter
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.store.signals import Change, Noticed, ReplicaGone, TranscriptChanged
from quarterdeck.store.status import ConnectionState
from quarterdeck.transcript.blocks import UserBlock
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, brief_keys, keyed
from quarterdeck.tui.kit.key_context import KeyContextChanged, key_context_of, nearest_context
from quarterdeck.tui.panes.replica import PendingUpdate, ReplicaHolder, ReplicaPane
from quarterdeck.tui.panes.tabs import CHAT, GetHost, TabPane
from quarterdeck.tui.screens.commands import CommandScreen, pointless
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.lines import SUGGESTED, FilterLine, RareText, sort_words
from quarterdeck.tui.widgets.replica_list import ListSide, ReplicaListView
from quarterdeck.tui.widgets.status_line import KeyLine, StatusLine, problem_words
from quarterdeck.tui.widgets.tab_bar import PageLinks
from quarterdeck.wire.search import SearchHit

if TYPE_CHECKING:
    from quarterdeck.tui.widgets.info import InfoPanel

WELCOME = (
    "No replicas yet.\nPress {replica.new} to create one:\na sandbox with your\n"
    "repository and an agent."
)
INFO_COLUMNS = 150
"""Width of the window from which the info panel is shown by default."""
STREAM_SECONDS = 1 / 20
"""Seconds between two frames of streamed text: nobody reads faster, and keys wait for each frame."""
NONE_SHOWN = "No matches.\n{list.everything} clears the filter."

BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (120, "-wide")]
"""Columns from which a window has a class."""


class MainScreen(CommandScreen):
    """List, pane, status line and key line."""

    DEFAULT_CSS = """
    MainScreen {
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
        &.-narrow.in-pane #side, &.zoomed.in-pane #side { display: none; }
        &.-narrow.in-pane #main { display: block; }
        &.-wide #side { width: 34; }
        & InfoPanel { display: none; }
        &.-wide InfoPanel.wanted { display: block; }
        &.in-table #side { width: 1fr; border-right: none; }
        &.in-table #main, &.in-table InfoPanel.wanted { display: none; }
    }
    """

    class Filled(Message):
        """The list and the chat beside it are shown; posted once."""

    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyContext.LIST),
        *bindings(KeyContext.TABS),
        *bindings(KeyContext.ANYWHERE),
    ]
    AUTO_FOCUS = "ReplicaListView"

    def __init__(self, services: Services, host: GetHost, directory: Path | None) -> None:
        super().__init__(services, directory)
        self._beside = ReplicaHolder(services, host)
        self._info: InfoPanel | None = None
        """Imported and mounted when it is first shown."""
        self._banner = RareText(id="banner")
        self._frame = PendingUpdate()
        self._scheduled = False
        self._shown_at = 0.0
        self._was_filled = False
        self.set_class(services.list_view.table, "in-table")
        self._with_info: bool | None = None
        """Whether the user wants the info panel; None: where the window is wide enough for both."""

    def compose(self) -> ComposeResult:
        # Textual adds this class after the first frame, for which everything is styled and drawn again.
        width = self.app.size.width
        *_, breakpoint = (name for least, name in BREAKPOINTS if width >= least)
        self.add_class(breakpoint, update=False)
        yield StatusLine()
        with Horizontal(id="body"):
            with ListSide(id="side"):
                yield FilterLine(suggested=SUGGESTED)
                yield ReplicaListView()
                yield PageLinks()
            yield self._beside
        yield KeyLine()

    def on_mount(self) -> None:
        self._stop_watching = self._services.changed.watch(self._changed)
        if not self._is_closing:
            self._show_list()

    def on_unmount(self) -> None:
        self._stop_watching()

    def on_screen_resume(self) -> None:
        """Note that no page or dialog covers the screen any more."""
        self.dwell()
        self._show_keys()

    def on_screen_suspend(self) -> None:
        """Note that a page or a dialog covers the screen."""
        self._show_keys()

    def dwell(self) -> None:
        """Note that the user sees the screen again, and so the replica that is shown."""
        self._beside.dwell()

    # changes of the store

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
        if self._is_closing:
            return
        frame, self._frame = self._frame, PendingUpdate()
        for removed in frame.removed:
            await self._report_removed(removed)
        if self.pane is not None and self._services.get(self.pane.replica_id) is None:
            await self._beside.say()  # its service is no longer shown
        if frame.listing or frame.connection:
            self._show_list()
        if frame.connection:
            self._show_banner()
        if self._info is not None and frame.connection and self._services.online:
            self._info.come_online()
        self._show_info()
        await self._beside.take(frame)
        if not self._was_filled and self._is_filled:
            self._was_filled = True
            self.post_message(self.Filled())

    @property
    def _is_filled(self) -> bool:
        pane = self.pane
        if pane is None:
            return self._services.listed and not self.listing.count
        return pane.chat is not None and pane.chat.loaded.is_set()

    def _show_list(self, *, sort: bool = False) -> None:
        services, states = self._services, self._services.ordered()
        welcome = keyed(NONE_SHOWN if states else WELCOME)
        names, several = services.environment_names, services.several
        self.listing.set_view(services.list_view, names, several=several)
        self.listing.table = self._in_table
        self.listing.empty = welcome if services.listed else ""
        self.listing.empty_action = "everything" if states else "new_replica"
        self.listing.show(services.filtered(states), sort=sort)
        self.listing.unmark(self.listing.marked - {state.id for state in states})
        self._beside.show_hint()
        self.query_one(StatusLine).show(services.connections, states)
        news, needs_you = services.current.automation_news
        self.query_one(PageLinks).show(news, needs_you=needs_you)
        self._show_filter()

    @on(ReplicaListView.MarksChanged)
    def _show_filter(self) -> None:
        listing, line = self.listing, self.query_one(FilterLine)
        marked, all_ = len(listing.marked), sum(1 for _ in self._services.all())
        order = "" if listing.table else sort_words(self._services.list_view)
        line.show(listing.count, all_, marked, order)
        self._show_keys()

    def on_resize(self) -> None:
        self._show_info()
        for side in self.query(ListSide):  # none while the screen is closed
            side.widen(self._services.list_view.wider)
        # The class is that of the width before; a pane with the focus stays.
        if self.has_class("-narrow") and not self.has_class("in-pane"):
            self.call_next(self._follow_cursor)

    async def _follow_cursor(self) -> None:
        """Show the replica under the cursor next to the list, where there is room for it."""
        if not self._is_closing and not self._in_table and not self.has_class("-narrow"):
            await self._beside.follow(self.listing.selected)

    @property
    def _shows_info(self) -> bool:
        return self.size.width >= INFO_COLUMNS if self._with_info is None else self._with_info

    def _show_info(self) -> None:
        """Show the panel next to the replica, where there is room for it and it is enabled."""
        if self._is_closing:
            return
        pane = self.pane
        state = self._services.get(pane.replica_id) if pane else None
        wanted = self._shows_info and state is not None
        if self._info is None and wanted:
            from quarterdeck.tui.widgets.info import InfoPanel

            self._info = InfoPanel(self._services)
            self.query_one("#body").mount(self._info)
        if self._info is not None:
            self._info.set_class(wanted, "wanted")
            if state is not None:
                self._info.show(state)

    def _show_banner(self) -> None:
        text = ""
        if (connection := self._troubled) is not None:
            whose = f"{connection.name}: " if self._services.several else ""
            text = one_line(f"{whose}{problem_words(connection)}")
        self._banner.show_text(text, before=self.query_one("#body"))

    @property
    def _troubled(self) -> ConnectionState | None:
        """The connection whose problem is told: of the replica that is shown, or the one in use.

        The status line says that another service cannot be reached, the settings why.
        """
        shown = self._services.of(self.pane.replica_id if self.pane else None)
        found = (shown.connection, self._services.current.connection)
        return next((one for one in found if one.problem is not None), None)

    async def _report_removed(self, removed: ReplicaGone) -> None:
        pane = self.pane
        if pane is None or pane.replica_id != removed.replica_id:
            return
        name = name_line(removed.name)
        if removed.elsewhere:
            self.tell("warning", name, "Deleted from another client.")
        if self._inside(pane) or self.focused is None:
            self.action_to_list()
        await self._beside.say(f"{name} was deleted.")

    def _notice(self, notice: Noticed) -> None:
        self.tell(notice.severity, notice.title, notice.text)

    @property
    def _is_closing(self) -> bool:
        """Whether the screen is being closed: its parts are removed before it.

        A cockpit that is closed while it starts never adds them.
        """
        return not self.query(ReplicaListView)

    # the current replica and place

    @property
    def listing(self) -> ReplicaListView:
        return self.query_one(ReplicaListView)

    @property
    def pane(self) -> ReplicaPane | None:
        """The replica that is shown next to the list."""
        return self._beside.pane

    @property
    def chosen(self) -> ReplicaState | None:
        """The replica that keys apply to: the one that has the focus, else the one under the cursor."""
        pane = self.pane
        if pane is not None and self._inside(pane):
            return self._services.get(pane.replica_id)
        return self._services.get(self.listing.selected)

    @property
    def meant(self) -> list[ReplicaState]:
        """Part of `CommandScreen`."""
        marked = self.listing.marked
        if marked and self.where is KeyContext.LIST:
            return [state for state in self._services.ordered() if state.id in marked]
        return [state] if (state := self.chosen) is not None else []

    @property
    def message_chosen(self) -> str:
        """Part of `CommandScreen`."""
        chat = self.pane.chat if self.pane else None
        block = chat.transcript.cursor_block if chat and chat.transcript.has_focus else None
        if not isinstance(block, UserBlock) or block.steered:
            return ""
        return block.message_id or ""

    def _inside(self, pane: Widget) -> bool:
        return self.focused is not None and pane in self.focused.ancestors

    @property
    def where(self) -> KeyContext:
        """The place of the focus, for help and the key line."""
        nothing = KeyContext.LIST if self.focused is None else KeyContext.CHAT
        return key_context_of(self.focused, nothing)

    def watch_focused(self, focused: Widget | None) -> None:
        """Show the part with the focus, where a narrow window has room for one."""
        if focused is not None:
            self._come_in(not self._in_side(focused))
        elif self.is_mounted:
            self.call_after_refresh(self._find_focus)
        if self.is_mounted:
            self._show_keys()

    def _come_in(self, inside: bool = True) -> None:
        """Note which part has the focus, or is about to get it.

        Only a narrow or zoomed window is styled by it: there it fills the screen.
        """
        update = self.has_class("-narrow") or self.has_class("zoomed")
        self.set_class(inside, "in-pane", update=update)
        self._show_table()

    @property
    def _in_table(self) -> bool:
        """Whether the list has the whole width, for its table: while it has the focus."""
        return self._services.list_view.table and not self.has_class("in-pane")

    def _show_table(self) -> None:
        if self._in_table != self.has_class("in-table") and not self._is_closing:
            self.set_class(self._in_table, "in-table")
            self.listing.table = self._in_table
            self._show_filter()
            self._beside.cover(self._in_table)

    def _in_side(self, focused: Widget) -> bool:
        return any(node.id == "side" for node in focused.ancestors)

    def _find_focus(self) -> None:
        """Note that nothing has the focus, and no other window does: the list gets it."""
        app_focus: bool = self.app.app_focus
        if self.focused is None and self.is_current and app_focus and not self._is_closing:
            self.set_focus(self.listing)

    @on(KeyContextChanged)
    def _show_keys(self) -> None:
        if self._is_closing:
            return
        context = nearest_context(self.focused)
        idle = pointless(self.meant) | context.without
        # Below a dialog they do not work.
        keys = brief_keys(self.where, idle, context.labels) if self.is_active else ()
        self.query_one(KeyLine).show(keys)

    @on(ReplicaHolder.Shown)
    def _pane_shown(self) -> None:
        if not self._is_closing:
            self._show_info()
            self._show_keys()

    async def show_replica(self, replica_id: UUID) -> ReplicaPane:
        """Return the pane of a replica, created if another one is shown."""
        return await self._beside.show(replica_id)

    @on(ReplicaListView.Opened)
    def _opened(self, event: ReplicaListView.Opened) -> None:
        self._open(event.replica_id)

    @work
    async def _open(self, replica_id: UUID, hit: SearchHit | None = None) -> None:
        # In a worker: while the pane is created the screen can show that keys wait.
        with hold_keys(self, "Opening the replica"):
            pane = await self.show_replica(replica_id)
            self._come_in()
            if hit is None:
                pane.focus_tab()
                return
            await pane.show("chat")
            if pane.chat is not None:
                pane.chat.show_text(hit.chat_id, hit.ts)

    @on(ReplicaListView.Highlighted)
    async def _highlighted(self, event: ReplicaListView.Highlighted) -> None:
        if not self._is_closing:
            self._show_keys()
            if event.replica_id == self.listing.selected:
                await self._follow_cursor()

    @on(TabPane.Left)
    async def _tab_left(self, event: TabPane.Left) -> None:
        if event.to != "list" and self.pane is not None:
            await self.pane.show(event.to)
        else:
            self.action_to_list()

    @on(FilterLine.Changed)
    def _narrow(self, event: FilterLine.Changed) -> None:
        self._services.filter_by(ReplicaFilter.of(event.typed))
        # Not with the next frame: a key that comes after it applies to what is shown then.
        self._show_list(sort=True)

    @on(FilterLine.Left)
    def _to_list_again(self) -> None:
        self.set_focus(self.listing)

    def action_narrow(self) -> None:
        self.query_one(FilterLine).start()

    def action_everything(self) -> None:
        self.listing.unmark(self.listing.marked)
        self.query_one(FilterLine).action_all()

    def action_sort_list(self) -> None:
        self.listing.sort()
        self._show_keys()

    async def action_table(self) -> None:
        """Give the list the whole width for a table, or show a replica next to it again."""
        self._change_view(table=not self._services.list_view.table)
        self._show_table()
        await self._follow_cursor()

    def action_widen(self, columns: int) -> None:
        """Give the list more columns next to the replica, or fewer, down to the usual ones."""
        side = self.query_one(ListSide)
        self._change_view(wider=side.widen(self._services.list_view.wider + columns))

    def action_sort_by(self, step: int) -> None:
        """Sort by another column."""
        view, several = self._services.list_view, self._services.several
        self._change_view(**view.sort_by(step, several=several))

    def action_reverse(self) -> None:
        self._change_view(reverse=not self._services.list_view.reverse)

    @on(ReplicaListView.ColumnChosen)
    def _column_chosen(self, event: ReplicaListView.ColumnChosen) -> None:
        """Sort by a column, or the other way round if it is sorted by that already."""
        view = self._services.list_view
        self._change_view(sort=event.key, reverse=event.key is view.sort and not view.reverse)

    def action_group(self) -> None:
        """Group the list by the next property."""
        group = self._services.list_view.next_group(several=self._services.several)
        self._change_view(group=group)
        words = "Not grouped" if group is Grouping.NONE else f"Grouped by {group}"
        self.tell("information", "List", words)

    def action_pin(self) -> None:
        if meant := {state.id for state in self.meant}:
            self._services.pin(meant)
            self._show_list(sort=True)

    def _change_view(self, **changes: Any) -> None:
        self._services.arrange(**changes)
        # Not with the next frame: a key that comes after it applies to what is shown then.
        self._show_list(sort=True)

    def action_mark(self) -> None:
        self.listing.action_mark()

    def action_mark_all(self) -> None:
        self.listing.action_mark_all()

    # actions that move the focus; those that change a replica are in the base class

    def action_to_list(self) -> None:
        pane = self.pane
        if pane is not None and pane.chat is not None and pane.chat.close_find():
            return
        self.set_focus(self.listing)
        if pane is not None:
            self.listing.select(pane.replica_id)

    def action_open(self) -> None:
        if (state := self.chosen) is not None:
            self._open(state.id)

    async def action_show(self, tab: str) -> None:
        if (state := self.chosen) is None:
            return
        with hold_keys(self, "Opening the replica"):
            pane = await self.show_replica(state.id)
            self._come_in()
            await pane.show(tab)

    async def action_question(self) -> None:
        """Go to the question that waits for an answer in the chat."""
        await self.action_show("chat")
        if self.pane is not None and self.pane.chat is not None:
            self.pane.chat.to_question()

    def go_to(self, replica_id: UUID, hit: SearchHit | None = None) -> None:
        """Focus a replica, wherever the user was before, and the text of a search's hit in it."""
        if self._services.get(replica_id) is not None:
            self.listing.select(replica_id)
            self._open(replica_id, hit)

    def action_next_waiting(self) -> None:
        """Go to the next replica that needs the user: from the list, to the first one."""
        current = None if self.where is KeyContext.LIST else self.chosen
        if (state := self._services.next_waiting(current)) is not None:
            self.go_to(state.id)
        else:
            from quarterdeck.tui.screens.page import NONE_WAITS

            self.tell("information", *NONE_WAITS)

    @on(PageLinks.Chosen)
    async def _page_chosen(self, event: PageLinks.Chosen) -> None:
        await self.run_action(event.method)

    def action_page(self, name: str) -> None:
        """Open one of `PAGES` over the list of replicas."""
        from quarterdeck.tui.screens.page import PAGES

        self.app.push_screen(PAGES[name](self._services.current, self.chosen), self._page_left)

    def _page_left(self, to: UUID | None) -> None:
        self.listing.sort()
        if to is not None and self._services.get(to) is not None:
            self.listing.select(to)
            self._open(to)

    async def action_write(self) -> None:
        chat = self.pane.chat if self.pane else None
        if chat is not None and self._inside(chat):
            self.set_focus(chat.writing_target)
        else:
            await self.action_show(CHAT)

    def action_toggle_info(self) -> None:
        if self._info is not None and self._info.has_focus:
            self.action_from_info()
        if self._has_room_for_info():
            self._with_info = not self._shows_info
            self._show_info()

    def _has_room_for_info(self) -> bool:
        """Return whether the window is wide enough for the panel, and say so if not."""
        if not (is_wide := self.has_class("-wide")):
            self.tell("information", "Info panel", "Needs 120 columns or more.")
        return is_wide

    def action_to_info(self) -> None:
        if self._has_room_for_info() and self.pane is not None:
            self._with_info = True
            self._show_info()
            self.set_focus(self._info)

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
            if chat.question.takes_keys:
                chat.to_question()
            else:
                self.set_focus(chat.queue if chat.queue.actionable else chat.writing_target)

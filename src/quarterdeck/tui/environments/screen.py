"""The screen of environments: the list next to the details of the chosen one."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import ClassVar
from uuid import UUID

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.environments import parts_text, scope_of
from quarterdeck.store.signals import Change, ConnectionChanged
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.kinds import KINDS, SectionName
from quarterdeck.tui.environments.rows import TITLES, Table, TableRow, pool_note
from quarterdeck.tui.environments.section import Parts, Section
from quarterdeck.tui.kit.dialogs import ConfirmScreen
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.environments import Environment


class EnvironmentList(HasKeyContext, Table):
    """The environments, by owner."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENTS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.ENVIRONMENTS


class EnvironmentsScreen(PageScreen):
    """List and sections; below 60 columns only the one with the focus."""

    DEFAULT_CSS = """
    EnvironmentsScreen {
        & #body { height: 1fr; }
        & #side { width: 25; border-right: solid $panel-lighten-2; }
        & #main { width: 1fr; }
        & #list-words { height: auto; color: $text-error; padding: 0 1; display: none; }
        &.-wide #side { width: 36; }
        &.-narrow #side { width: 1fr; border-right: none; }
        &.-narrow #main { display: none; }
        &.-narrow.in-section #side { display: none; }
        &.-narrow.in-section #main { display: block; }
    }
    """
    AUTO_FOCUS = "EnvironmentList"
    home = KeyContext.ENVIRONMENTS

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._parts = Parts.of(app_state)
        self._name: SectionName = "general"
        self._section = KINDS[self._name].make(self._parts)
        self._failed = False

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield EnvironmentList()
                yield Static(id="list-words", markup=False)
            with Vertical(id="main"):
                yield TabBar()
                yield self._section

    def on_mount(self) -> None:
        self._show_tabs()
        self._read()

    # reading

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        book = self._parts.book
        # Keys typed after the one that opens the page are for its environments.
        hold = nullcontext() if book.ordered() else hold_keys(self, "Reading the environments")
        try:
            with hold:
                await book.read()
                self._list_says("")
                self.show_list()
                self._show_chosen()
            await book.read_pools()
        except ClientError as error:
            self._list_says(f"{error} " + keyed("{environments.read} to retry."))
        else:
            self.show_list()

    def _list_says(self, words: str) -> None:
        self._failed = bool(words)
        line = self.query_one("#list-words", Static)
        line.update(one_line(words))
        line.display = bool(words)

    def take(self, change: Change) -> None:
        """Note that the connection is back: what could not be read is read now."""
        if isinstance(change, ConnectionChanged) and self._app_state.online:
            if self._failed:
                self._read()
            elif self.section.failed:
                self._show_chosen()

    def action_read_again(self) -> None:
        self._read()

    def action_reconnect(self) -> None:
        super().action_reconnect()
        if self._failed or self.section.failed:
            self._read()

    # showing

    @property
    def listing(self) -> EnvironmentList:
        """The list of environments."""
        return self.query_one(EnvironmentList)

    @property
    def section(self) -> Section:
        """The section that is shown."""
        return self._section

    @property
    def chosen(self) -> Environment | None:
        """The environment under the cursor."""
        key = self.listing.chosen
        return self._parts.book.get(UUID(key)) if key else None

    def show_list(self) -> None:
        """Show what is known of the environments."""
        self.listing.show_table(self._rows(), 0.6)

    def _rows(self) -> Sequence[TableRow]:
        rows: list[TableRow] = []
        scope = None
        for one in self._parts.book.ordered():
            if scope_of(one) is not scope:
                scope = scope_of(one)
                rows.append(TableRow("", (TITLES[scope],), "heading"))
            note, style = pool_note(self._parts.book.pools.get(one.id))
            rows.append(TableRow(str(one.id), (one.name, note), style))
        return rows

    def _show_tabs(self) -> None:
        wide = self.size.width >= 120
        tabs = [
            Tab(name, f"{place} {kind.label}" if wide else kind.label)
            for place, (name, kind) in enumerate(KINDS.items(), start=1)
        ]
        self.query_one(TabBar).show(tabs, self._name)

    def on_resize(self) -> None:
        if self.is_mounted:
            self._show_tabs()

    @on(Table.Highlighted, "EnvironmentList")
    def _highlighted(self) -> None:
        self._show_chosen(rest=True)

    @on(Table.Chosen, "EnvironmentList")
    def _clicked(self) -> None:
        self.action_to_section()

    def _show_chosen(self, *, rest: bool = False) -> None:
        if (environment := self.chosen) is not None:
            self.section.show(environment, rest=rest)

    @on(Section.Altered)
    @work(exclusive=True, group="altered")
    async def _altered(self) -> None:
        environment = self.section.environment
        if environment is None:
            return
        try:
            changed = await self._parts.book.refresh(environment.id)
            await self._parts.book.read_pool(environment.id)
        except ClientError as error:
            self._list_says(f"{error} " + keyed("{environments.read} to retry."))
            return
        self.show_list()
        if changed is not None and self.section.environment is environment:
            self.section.environment = changed
            self.section.paint()

    # navigation

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Show the part with the focus, where a narrow window has room for one."""
        self._come_in(not isinstance(event.widget, EnvironmentList))

    def _come_in(self, inside: bool = True) -> None:
        self.set_class(inside, "in-section", update=self.has_class("-narrow"))

    def action_to_section(self) -> None:
        if self.chosen is not None:
            self._come_in()
            self.set_focus(self.section.rows)
            self._show_chosen()

    def action_to_list(self) -> None:
        self.set_focus(self.listing)

    @on(TabBar.Chosen)
    async def _tab_chosen(self, event: TabBar.Chosen) -> None:
        if event.key in KINDS:
            await self.action_section(event.key)

    async def action_section(self, name: SectionName) -> None:
        with hold_keys(self, "Opening"):
            if name != self._name:
                self._name = name
                created = KINDS[name].make(self._parts)
                with self.app.batch_update():
                    await self.query_one("#main").mount(created)
                    left, self._section = self._section, created
                    await left.remove()
                self._show_tabs()
            self.action_to_section()

    # changes to an environment

    @work
    async def action_new(self) -> None:
        created = await self.app.push_screen_wait(dialogs.new_environment(self._parts.book))
        if isinstance(created, Environment):
            self.show_list()
            self.listing.select(str(created.id))
            self._show_chosen()

    @work
    async def action_rename(self) -> None:
        environment = self.chosen
        if environment is None:
            return
        if environment.is_global:
            self._refuse("The global environment cannot be renamed; its contents can be changed.")
            return
        dialog = dialogs.change_environment(self._parts.book, environment)
        if await self.app.push_screen_wait(dialog) is not None:
            self.show_list()
            self._show_chosen()

    def _refuse(self, words: str) -> None:
        self.tell("information", "Environments", words)

    @work
    async def action_delete(self) -> None:
        environment = self.chosen
        if environment is None:
            return
        if environment.is_global:
            self._refuse("The global environment cannot be deleted.")
            return
        name = one_line(environment.name)
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete {name}?",
                f"This permanently deletes {parts_text(environment)} with it. Delete its replicas first; "
                "repositories are not touched.",
                "Delete",
            )
        )
        if not sure:
            return
        try:
            await self._parts.book.delete(environment.id)
        except ClientError as error:
            details = getattr(error, "details", None)
            why = f"{error} ({details})" if details else f"{error} {error.next_step}"
            self.tell("error", f"{name} was not deleted", why)
        else:
            self.show_list()
            self._show_chosen()

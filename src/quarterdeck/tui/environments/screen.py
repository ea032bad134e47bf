"""The screen of environments: the list beside what the chosen one carries."""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes import Change, ConnectionChanged
from quarterdeck.store.deck import Deck
from quarterdeck.store.environments import scope_of, what_goes
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.kinds import KINDS, SectionName
from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.environments.rows import Row, RowList
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.words import TITLES, pool_note
from quarterdeck.tui.screens.confirm import ConfirmScreen
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.tui.widgets.placed import Placed
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.environments import Environment


class EnvironmentList(Placed, RowList):
    """The environments, by whose they are."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENTS)]

    @property
    def place(self) -> Where:
        return Where.ENVIRONMENTS


class EnvironmentsScreen(PageScreen):
    """List and sections; below 60 columns the one that has the focus."""

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
    home = Where.ENVIRONMENTS

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self._parts = Parts.of(deck)
        self._name: SectionName = "general"
        self._failed = False

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield EnvironmentList(0.6)
                yield Static(id="list-words", markup=False)
            with Vertical(id="main"):
                yield TabBar()
                yield KINDS[self._name].make(self._parts)

    def on_mount(self) -> None:
        self._show_tabs()
        self._read()

    # reading

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        book = self._parts.book
        try:
            await book.read()
            self._list_says("")
            self.show_list()
            self._show_chosen()
            await book.read_pools()
        except ClientError as error:
            self._list_says(f"{error} " + keyed("{environments.read} reads again."))
        else:
            self.show_list()

    def _list_says(self, words: str) -> None:
        self._failed = bool(words)
        line = self.query_one("#list-words", Static)
        line.update(one_line(words))
        line.display = bool(words)

    def take(self, change: Change) -> None:
        """The line is back: what could not be read is read now."""
        if isinstance(change, ConnectionChanged) and self._deck.online:
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
        return self.query_one(Section)

    @property
    def chosen(self) -> Environment | None:
        """The environment under the cursor."""
        key = self.listing.chosen
        return self._parts.book.get(UUID(key)) if key else None

    def show_list(self) -> None:
        """Shows what is known of the environments."""
        self.listing.show(self._rows())

    def _rows(self) -> Sequence[Row]:
        rows: list[Row] = []
        scope = None
        for one in self._parts.book.ordered():
            if scope_of(one) is not scope:
                scope = scope_of(one)
                rows.append(Row("", (TITLES[scope],), "heading"))
            note, style = pool_note(self._parts.book.pools.get(one.id))
            rows.append(Row(str(one.id), (one.name, note), style))
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

    @on(RowList.Highlighted, "EnvironmentList")
    def _highlighted(self) -> None:
        self._show_chosen(rest=True)

    @on(RowList.Chosen, "EnvironmentList")
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
            self._list_says(f"{error} " + keyed("{environments.read} reads again."))
            return
        self.show_list()
        if changed is not None and self.section.environment is environment:
            self.section.environment = changed
            self.section.paint()

    # moving about

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """In a narrow window the part with the focus is the one shown."""
        self.set_class(not isinstance(event.widget, EnvironmentList), "in-section")

    def action_to_section(self) -> None:
        if self.chosen is not None:
            self.add_class("in-section")
            self.set_focus(self.section.rows)
            self._show_chosen()

    def action_to_list(self) -> None:
        self.set_focus(self.listing)

    @on(TabBar.Chosen)
    async def _tab_chosen(self, event: TabBar.Chosen) -> None:
        if event.key in KINDS:
            await self.action_section(event.key)

    async def action_section(self, name: SectionName) -> None:
        hold_keys(self)
        if name != self._name:
            self._name = name
            with self.app.batch_update():
                await self.section.remove()
                await self.query_one("#main").mount(KINDS[name].make(self._parts))
            self._show_tabs()
        self.action_to_section()
        release_keys(self)

    # what a person has done to an environment

    @work
    async def action_new(self) -> None:
        hold_keys(self)
        made = await self.app.push_screen_wait(dialogs.new_environment(self._parts.book))
        if isinstance(made, Environment):
            self.show_list()
            self.listing.select(str(made.id))
            self._show_chosen()

    @work
    async def action_rename(self) -> None:
        environment = self.chosen
        if environment is None:
            return
        if environment.is_global:
            self._refuse("The global environment keeps its name; what it carries can be changed.")
            return
        hold_keys(self)
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
        hold_keys(self)
        name = one_line(environment.name)
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete {name}?",
                f"With it go {what_goes(environment)}, for good. Replicas made from it must be "
                "deleted before; repositories are not touched.",
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

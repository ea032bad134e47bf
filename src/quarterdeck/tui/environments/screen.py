"""The screen of environments: the list next to the sections of the chosen one."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar, Literal
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
from quarterdeck.tui.actions import KeyContext, eager_bindings, keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.part_sections import (
    FilesSection,
    HooksSection,
    McpsSection,
    SkillsSection,
    VariablesSection,
)
from quarterdeck.tui.environments.section import (
    TITLES,
    Parts,
    Section,
    Table,
    TableRow,
    counted,
    moment,
    pool_note,
    size_of,
    wrapped,
)
from quarterdeck.tui.kit.dialogs import ConfirmScreen
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar
from quarterdeck.wire.environments import Environment, PooledWorkspace, WarmPool
from quarterdeck.wire.permissions import cost_limit_words

OFF = "Off: replicas are created on demand. {pool.switch} turns it on."


class PoolSection(Section):
    """Its size, its state, why it waits, and its content."""

    where = KeyContext.ENVIRONMENT_POOL
    widths = (14, 18)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_POOL)]

    def forget(self) -> None:
        self._pool: WarmPool | None = None
        self._waiting: list[PooledWorkspace] = []

    async def load(self, environment: Environment) -> None:
        self._pool = await self.parts.book.read_pool(environment.id)
        self._waiting = await self.parts.book.pooled(self._pool) if self._pool else []

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        pool = self._pool
        if pool is None:
            words, *more = wrapped(keyed(OFF), self.rows.size.width - 2)
            rest = [TableRow("", (line,), "muted") for line in more]
            return [TableRow("state", (words,), "muted"), *rest]
        rows = [TableRow("state", ("Pool", "on" if pool.enabled else "off"))]
        for title, text in (
            ("Target size", counted(pool.target_size, "replica")),
            ("Now", _now(pool)),
            ("Version", f"{pool.generation} (bumped by each saved warm hook)"),
        ):
            lines = wrapped(text, self.room)
            rows += [TableRow("", (title if n == 0 else "", line)) for n, line in enumerate(lines)]
        if pool.last_failure_reason is not None:
            at = moment(pool.last_failure_at) if pool.last_failure_at else ""
            rows.append(
                TableRow(
                    "",
                    ("Failed", f"{at}, {keyed('{pool.retry}')} to retry now".lstrip(", ")),
                    "error",
                )
            )
            lines = wrapped(pool.last_failure_reason, self.room)
            rows += [TableRow("", ("", line), "error") for line in lines]
        if self._waiting:
            rows.append(TableRow("", ("REPLICA", "SINCE", "STATE"), "heading"))
            rows += [_row(workspace) for workspace in self._waiting]
        return rows

    def action_edit(self) -> None:
        self.action_switch()

    def action_switch(self) -> None:
        on = not (self._pool is not None and self._pool.enabled)
        self._switch(on, "Pool on: replicas are being prepared." if on else "Off.")

    def action_retry(self) -> None:
        if self._pool is None or not self._pool.enabled:
            self.say("Off. enter turns it on.")
            return
        self._switch(True, "Retrying now.")

    def _switch(self, on: bool, done: str) -> None:
        if (environment := self.environment) is not None:
            self.act(self.parts.book.switch_pool(environment.id, on), done)


def _now(pool: WarmPool) -> str:
    parts = [f"{pool.ready_count} ready", f"{pool.warming_count} being prepared"]
    if pool.stale_count:
        parts.append(f"{pool.stale_count} of an older version")
    return ", ".join(parts)


def _row(workspace: PooledWorkspace) -> TableRow:
    style = "error" if workspace.state == "failed" else "plain"
    cells = (str(workspace.id)[:8], moment(workspace.created_at), workspace.state)
    return TableRow(str(workspace.id), cells, style)


SHOWN_LINES = 200
"""Lines of a prompt that are shown here; its editor shows all."""
LOCKED = "The global environment cannot be edited; its contents can."


class GeneralSection(Section):
    """Its fields, and the prompts in full."""

    where = KeyContext.ENVIRONMENT_GENERAL
    widths = (13,)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_GENERAL)]

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        book = self.parts.book
        source = book.get(environment.source_environment_id or environment.id)
        rows = [
            TableRow("name", ("Name", environment.name)),
            TableRow("scope", ("Scope", str(scope_of(environment)))),
            TableRow("bound", ("Repositories", book.bound_to(environment))),
            TableRow("carries", ("Contents", _carries(environment)), "muted"),
            TableRow("changed", ("Updated", moment(environment.updated_at)), "muted"),
        ]
        if environment.description:
            rows.insert(1, TableRow("description", ("Description", environment.description)))
        if source is not None and source.id != environment.id:
            rows.insert(2, TableRow("source", ("Inherits from", source.name)))
        for title, text in (
            ("System prompt", environment.system_prompt),
            ("Push", environment.push),
            ("Co-author", environment.co_author),
            ("Permissions", environment.permission_policy),
            ("Rules", "\n".join(rule.line for rule in environment.permission_rules)),
            ("Cost limit", cost_limit_words(environment.cost_limit)),
            ("Preferences", environment.personal_preferences),
        ):
            rows += _text(title, text, self.room)
        return rows

    def action_edit(self) -> None:
        environment = self.environment
        if environment is None:
            return
        if environment.is_global:
            self.say(LOCKED, is_error=True)
            return
        self.open(lambda: dialogs.change_environment(self.parts.book, environment))

    def action_prompt(self) -> None:
        environment = self.environment
        if environment is None:
            return
        if environment.is_global or environment.source_environment_id is not None:
            self.say(
                LOCKED
                if environment.is_global
                else "Inherited from the source environment; edit it there."
            )
            return
        self.open(lambda: dialogs.change_prompt(self.parts.book, environment))


def _carries(environment: Environment) -> str:
    return ", ".join(
        (
            counted(environment.variable_count, "variable"),
            counted(environment.file_count, "file"),
            counted(environment.skill_count, "skill"),
            f"{environment.mcp_count} MCP",
        )
    )


def _text(title: str, text: str | None, room: int) -> list[TableRow]:
    if not text:
        return [TableRow(title, (title, "none"), "muted")]
    lines = wrapped(text, room)
    rest = [TableRow("", ("", line)) for line in lines[:SHOWN_LINES]]
    return [TableRow(title, (title, size_of(text)), "heading"), *rest]


SectionName = Literal["general", "variables", "files", "skills", "mcps", "hooks", "pool"]


@dataclass(frozen=True)
class SectionKind:
    """The label in the bar, and the factory of the section."""

    label: str
    make: Callable[[Parts], Section]


KINDS: dict[SectionName, SectionKind] = {
    "general": SectionKind("General", GeneralSection),
    "variables": SectionKind("Variables", VariablesSection),
    "files": SectionKind("Files", FilesSection),
    "skills": SectionKind("Skills", SkillsSection),
    "mcps": SectionKind("MCP", McpsSection),
    "hooks": SectionKind("Hooks", HooksSection),
    "pool": SectionKind("Pool", PoolSection),
}


class EnvironmentListView(HasKeyContext, Table):
    """The environments, by owner."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENTS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.ENVIRONMENTS


class EnvironmentsScreen(PageScreen):
    """List and sections; below 60 columns only the one with the focus. The cursor begins at the environment `first`."""

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
    AUTO_FOCUS = "EnvironmentListView"
    home = KeyContext.ENVIRONMENTS

    def __init__(self, app_state: AppState, first: UUID | None = None) -> None:
        super().__init__(app_state)
        self._first = first
        self._parts = Parts.of(app_state)
        self._name: SectionName = "general"
        self._section = KINDS[self._name].make(self._parts)
        self._failed = False

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield EnvironmentListView()
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
                first, self._first = self._first, None
                if first is not None:
                    self.listing.select(str(first))
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
    def listing(self) -> EnvironmentListView:
        """The list of environments."""
        return self.query_one(EnvironmentListView)

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
        """Show the environments as far as they are known."""
        self.listing.show_table(self._rows(), 0.6)

    def _rows(self) -> Sequence[TableRow]:
        rows: list[TableRow] = []
        scope = None
        for environment in self._parts.book.ordered():
            if scope_of(environment) is not scope:
                scope = scope_of(environment)
                rows.append(TableRow("", (TITLES[scope],), "heading"))
            note, style = pool_note(self._parts.book.pools.get(environment.id))
            rows.append(TableRow(str(environment.id), (environment.name, note), style))
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

    @on(Table.Highlighted, "EnvironmentListView")
    def _highlighted(self) -> None:
        self._show_chosen(rest=True)

    @on(Table.Chosen, "EnvironmentListView")
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
        self._come_in(not isinstance(event.widget, EnvironmentListView))

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

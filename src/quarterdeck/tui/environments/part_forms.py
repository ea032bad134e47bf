"""Dialogs of parts: MCP servers, skills, and variables from the text of a `.env` file."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static, TextArea

from quarterdeck.client.errors import ClientError
from quarterdeck.store.environment_paste import Effect, VariableChange, counts_text, parse, plan
from quarterdeck.store.environments import InheritedPart
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings, keyed
from quarterdeck.tui.environments.section import HIDDEN, Parts, Table, TableRow, counted
from quarterdeck.tui.forms.kit import Field, FormScreen, InvalidValueError, ModelForm, settled
from quarterdeck.tui.forms.kit.controls import Editor
from quarterdeck.tui.forms.kit.spec import model_errors, spec_of
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog, Unsaved, UnsavedScreen
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.base import Body
from quarterdeck.wire.environment_parts import (
    ChangeMcp,
    ChangeVariable,
    CreateMcp,
    CreateSkill,
    CreateVariable,
    EnvironmentMcp,
    EnvironmentVariable,
    FoundSkill,
    McpName,
    McpTransport,
    RemoteConfig,
    StdioConfig,
)
from quarterdeck.wire.environments import Environment

TRANSPORTS = (
    ("stdio: a program that is started", "stdio"),
    ("http: a server somewhere else", "http"),
    ("sse: the same with an event stream", "sse"),
)
STDIO, REMOTE = ("command", "args", "env"), ("url", "headers")
FIELDS = (
    Field("name", help="Name that agents see.", rule="Letters, digits, _ and -"),
    Field("transport", help="How an agent talks to it.", options=TRANSPORTS),
    Field("command", help="The program, without its arguments.", placeholder="npx"),
    Field("args", "Arguments", "One a line, as they are.", rows=3),
    Field("env", "Variables", "Variables of the server; may be secret.", secret=True, rows=3),
    Field("url", "URL", placeholder="https://host/mcp"),
    Field("headers", help="Sent with each request; may be secret.", secret=True, rows=3),
)


class McpServerEntry(Body):
    """Every field that the dialog may show; which apply depends on the transport."""

    name: McpName
    transport: McpTransport = McpTransport.STDIO
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}

    def config(self) -> dict[str, Any]:
        """Return the fields of the transport.

        Raises:
            InvalidValueError: a value does not fit.
        """
        stdio = self.transport is McpTransport.STDIO
        model: type[BaseModel] = StdioConfig if stdio else RemoteConfig
        given = self.model_dump(include=set(STDIO if stdio else REMOTE))
        try:
            return model.model_validate(given).model_dump()
        except ValidationError as error:
            specs = [spec_of(McpServerEntry, field) for field in FIELDS]
            raise InvalidValueError(model_errors(error, specs)) from None


class McpScreen(FormScreen[object]):
    """Adds or changes a server."""

    def __init__(self, parts: Parts, environment: Environment, mcp: EnvironmentMcp | None) -> None:
        self._parts = parts
        self._environment = environment
        self._mcp = mcp
        form = ModelForm(McpServerEntry, FIELDS, _start(mcp))
        title = mcp.name if mcp else f"New MCP server of {environment.name}"
        super().__init__(title, form, self._keep, verb="Save" if mcp else "Add")

    def on_mount(self) -> None:
        self._fit_transport()

    @on(ModelForm.Changed)
    def _fit_transport(self) -> None:
        stdio = self.form.value("transport") in {"stdio", McpTransport.STDIO}
        for path in STDIO:
            self.form.row(path).display = stdio
        for path in REMOTE:
            self.form.row(path).display = not stdio

    async def _keep(self, body: BaseModel) -> object:
        assert isinstance(body, McpServerEntry)
        config, contents = body.config(), self._parts.contents
        if self._mcp is None:
            new = CreateMcp(name=body.name, transport=body.transport, config=config)
            return await contents.add_mcp(self._environment, new)
        change = ChangeMcp(name=body.name, transport=body.transport, config=config)
        return await contents.change_mcp(self._environment, self._mcp.id, change)


def _start(mcp: EnvironmentMcp | None) -> Mapping[str, Any]:
    if mcp is None:
        return {}
    return {"name": mcp.name, "transport": mcp.transport, **mcp.config}


TYPING = 0.25
"""Seconds without a key before a search starts."""
UNTYPED = "Type to search. esc, then m: install from URL."
NOTHING = "No results. esc, then m: install from URL."


class SkillSearch(Dialog[object], SettledLayout[object]):
    """Dismissed with True when something was installed, else with None."""

    DEFAULT_CSS = """
    SkillSearch {
        align: center middle;
        & > Vertical {
            width: 96;
            max-width: 98%;
            height: 90%;
            padding: 0 2;
            background: $surface;
            border: round $border;
        }
        & Table { height: 1fr; margin-top: 1; }
        & .about { height: auto; max-height: 3; color: $text-muted; }
        & .words { height: auto; color: $text-muted; }
        & .words.trouble { color: $text-error; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.SKILL_SEARCH
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.SKILL_SEARCH)]

    def __init__(self, parts: Parts, environment: Environment, installed: Iterable[str]) -> None:
        super().__init__()
        self._parts = parts
        self._environment = environment
        self._installed = set(installed)
        self._found: dict[str, FoundSkill] = {}
        self._done = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(f"Install a skill in {one_line(self._environment.name)}")
        with box:
            query = Input(placeholder="Search skills", compact=True)
            query.cursor_blink = False
            yield query
            yield Table()
            yield Static(classes="about", markup=False)
            yield Static("enter install · down list · esc close", classes="words")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._search("", 0)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._search(event.value, TYPING)

    @work(exclusive=True, group="search")
    async def _search(self, query: str, wait: float) -> None:
        await asyncio.sleep(wait)
        self._show_message("Searching …")
        try:
            found = await self._parts.contents.search_skills(query)
        except ClientError as error:
            self._show_message(f"{error} {error.next_step}", is_error=True)
            return
        self._found = {f"{skill.slug} {skill.source}": skill for skill in found}
        self._show()
        nothing = NOTHING if query.strip() else UNTYPED
        self._show_message(f"{counted(len(found), 'skill')}; enter installs" if found else nothing)

    def _show(self) -> None:
        rows = [
            TableRow(key, (skill.name, self._note(skill), skill.source))
            for key, skill in self._found.items()
        ]
        self.query_one(Table).show_table(rows, 0.3, 11)
        self._tell_about()

    def _note(self, skill: FoundSkill) -> str:
        if skill.slug in self._installed:
            return "✓ installed"
        return f"{skill.installs} uses" if skill.installs else ""

    @on(Table.Highlighted)
    def _tell_about(self) -> None:
        skill = self._found.get(self.query_one(Table).chosen or "")
        about = skill.description or "" if skill is not None else ""
        self.query_one(".about", Static).update(one_line(about))

    def _show_message(self, text: str, *, is_error: bool = False) -> None:
        line = self.query_one(".words", Static)
        line.update(one_line(text))
        line.set_class(is_error, "trouble")

    def action_down(self) -> None:
        rows = self.query_one(Table)
        if rows.has_focus:
            rows.action_move(1)
        else:
            rows.focus()

    @on(Table.Chosen)
    def action_install(self) -> None:
        skill = self._found.get(self.query_one(Table).chosen or "")
        if skill is not None:
            self._install(skill)

    @work(exclusive=True, group="install")
    async def _install(self, skill: FoundSkill) -> None:
        body = CreateSkill.model_construct(name=skill.name, slug=skill.slug, source=skill.source)
        try:
            await self._parts.contents.add_skill(self._environment, body)
        except ClientError as error:
            self._show_message(f"{error} {error.next_step}", is_error=True)
            return
        self._done = True
        self._installed.add(skill.slug)
        self._show()
        self._show_message(f"{skill.name} was installed; esc to close.")

    def action_close(self) -> None:
        self.dismiss(True if self._done else None)


SIGNS = {Effect.ADD: "+ add", Effect.CHANGE: "~ change", Effect.SAME: "= same", Effect.WRONG: "✗"}


class PasteScreen(Dialog[object], SettledLayout[object]):
    """Dismissed with True when something was imported, else with None.

    What the service refuses stays in the list with the reason, and the text is kept.
    """

    DEFAULT_CSS = """
    PasteScreen {
        align: center middle;
        & > Vertical {
            width: 90;
            max-width: 98%;
            height: 94%;
            padding: 0 2;
            background: $surface;
            border: round $border;
        }
        & Editor { border: round $panel-lighten-2; padding: 0 1; border-title-color: $text-muted; }
        & Editor:focus { border: round $border; }
        & Table { height: 1fr; }
        & #sum { height: auto; color: $text-muted; }
        & #sum.trouble { color: $text-error; }
        & #foot { height: 1; }
        & #keys { width: 1fr; color: $text-muted; }
        & Button { margin-left: 2; min-width: 10; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        binding for binding in eager_bindings(KeyContext.FORM) if binding.id != "form.editor"
    ]

    def __init__(
        self,
        parts: Parts,
        environment: Environment,
        known: Sequence[InheritedPart[EnvironmentVariable]],
    ) -> None:
        super().__init__()
        self._parts = parts
        self._environment = environment
        self._known = list(known)
        self._changes: list[VariableChange] = []
        self._refused: dict[str, str] = {}
        self._shown = False
        self._busy = False
        self._imported = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(f"Paste a .env file into {one_line(self._environment.name)}")
        with box:
            editor = Editor("", secret=True, rows=6)
            editor.border_title = ".env contents (masked)"
            yield editor
            yield Static("Nothing changes until you save.", id="sum", markup=False)
            yield Table()
            with Horizontal(id="foot"):
                keys = keyed("{form.save} save · {form.reveal} show · {form.close} close")
                yield Static(keys, id="keys", markup=False)
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Save", id="save", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one(Editor).focus()

    @on(TextArea.Changed)
    def _plan(self) -> None:
        self._refused.clear()
        self._preview()

    def _preview(self) -> None:
        bound = self._environment.source_environment_id is not None
        self._changes = plan(parse(self.query_one(Editor).text), self._known, bound=bound)
        self.query_one(Table).show_table(map(self._row, self._changes), 8, 0.4)
        self._show_message(counts_text(self._changes) or "Nothing changes until you save.")

    def _row(self, change: VariableChange) -> TableRow:
        refused = self._refused.get(change.key)
        if refused or change.effect is Effect.WRONG:
            return TableRow("", (SIGNS[Effect.WRONG], change.key, refused or change.note), "error")
        value = change.value if self._shown else HIDDEN
        note = f"{value}  {change.note}" if change.note else value
        style = "muted" if change.effect is Effect.SAME else "plain"
        return TableRow("", (SIGNS[change.effect], change.key, note), style)

    def _show_message(self, text: str, *, is_error: bool = False) -> None:
        line = self.query_one("#sum", Static)
        line.update(one_line(text))
        line.set_class(is_error, "trouble")

    def action_reveal(self) -> None:
        self._shown = not self._shown
        self.query_one(Editor).hidden = not self._shown
        self._preview()

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        if not self._busy:
            self._save()

    @work(exclusive=True, group="save")
    async def _save(self) -> None:
        self._busy = True
        try:
            await settled(self.query_one(Editor))
            self._refused.clear()
            self._preview()
            wanted = [
                change for change in self._changes if change.effect in {Effect.ADD, Effect.CHANGE}
            ]
            if not wanted:
                self._show_message("No changes.", is_error=True)
                return
            await self._take_over(wanted)
        finally:
            self._busy = False

    async def _take_over(self, wanted: Sequence[VariableChange]) -> None:
        for change in wanted:
            try:
                await self._apply(change)
                self._imported = True
            except ClientError as error:
                self._refused[change.key] = one_line(str(error))
        wrong = [changed for changed in self._changes if changed.effect is Effect.WRONG]
        if not self._refused and not wrong:
            self.dismiss(True)
            return
        try:
            self._known = await self._parts.contents.variables(self._environment)
        except ClientError as error:
            self._show_message(f"{error} {error.next_step}", is_error=True)
            return
        self._preview()
        done = len(wanted) - len(self._refused)
        self._show_message(f"Imported {done}. Fix the marked lines, or close.", is_error=True)

    async def _apply(self, change: VariableChange) -> None:
        contents, environment = self._parts.contents, self._environment
        if change.id is not None:
            await contents.change_variable(
                environment, change.id, ChangeVariable(value=change.value)
            )
        else:
            body = CreateVariable(key=change.key, value=change.value)
            await contents.add_variable(environment, body)

    @on(Button.Pressed, "#cancel")
    def action_close(self) -> None:
        self._close()

    @work(exclusive=True, group="close")
    async def _close(self) -> None:
        with hold_keys(self, "Closing"):
            await settled(self.query_one(Editor))
        self._preview()
        undone = any(change.effect in {Effect.ADD, Effect.CHANGE} for change in self._changes)
        answer = Unsaved.DROP
        if undone:
            answer = await self.app.push_screen_wait(UnsavedScreen(counts_text(self._changes)))
        if answer is Unsaved.SAVE:
            self.action_save()
        elif answer is Unsaved.DROP:
            self.dismiss(True if self._imported else None)

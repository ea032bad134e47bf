"""Forms of MCP servers and skills."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings
from quarterdeck.tui.environments.rows import Table, TableRow, counted
from quarterdeck.tui.environments.section import Parts
from quarterdeck.tui.forms.kit import Field, FormScreen, InvalidValueError, ModelForm
from quarterdeck.tui.forms.kit.spec import spec_of
from quarterdeck.tui.forms.kit.values import model_errors
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.wire.base import Body
from quarterdeck.wire.environment_parts import (
    ChangeMcp,
    CreateMcp,
    CreateSkill,
    EnvironmentMcp,
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
    Field("name", help="What agents call it.", rule="Letters, digits, _ and -"),
    Field("transport", help="How an agent talks to it.", options=TRANSPORTS),
    Field("command", help="The program, without its arguments.", placeholder="npx"),
    Field("args", "Arguments", "One a line, as they are.", rows=3),
    Field("env", "Variables", "Its own; they may be secret.", secret=True, rows=3),
    Field("url", "URL", placeholder="https://host/mcp"),
    Field("headers", help="Sent with each request; they may be secret.", secret=True, rows=3),
)


class McpServer(Body):
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
            specs = [spec_of(McpServer, field) for field in FIELDS]
            raise InvalidValueError(model_errors(error, specs)) from None


class McpScreen(FormScreen[object]):
    """Adds or changes a server."""

    def __init__(self, parts: Parts, environment: Environment, mcp: EnvironmentMcp | None) -> None:
        self._parts = parts
        self._environment = environment
        self._mcp = mcp
        form = ModelForm(McpServer, FIELDS, _start(mcp))
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
        assert isinstance(body, McpServer)
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
UNTYPED = "Type what to search for. esc, then m, installs from a source by hand."
NOTHING = "No results. esc, then m: install from URL."


class SkillSearch(SettledLayout[object], Dialog[object]):
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
            border: round $primary;
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
        self._found = {f"{one.slug} {one.source}": one for one in found}
        self._show()
        nothing = NOTHING if query.strip() else UNTYPED
        self._show_message(f"{counted(len(found), 'skill')}; enter installs" if found else nothing)

    def _show(self) -> None:
        rows = [
            TableRow(key, (one.name, self._note(one), one.source))
            for key, one in self._found.items()
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

"""The settings page, and its prompts."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, cast
from uuid import UUID
from weakref import WeakKeyDictionary

from pydantic import BaseModel
from pydantic import Field as Bounds
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.settings import ServiceSettings
from quarterdeck.store.signals import Change, ConnectionChanged
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings, prompt_bindings, shown_key
from quarterdeck.tui.actions.pages import SETTINGS_PLACES
from quarterdeck.tui.forms.kit import Field, FormScreen, InvalidValueError, ModelForm, Refusal
from quarterdeck.tui.kit.dialogs import (
    AskField,
    AskScreen,
    Choice,
    ChooseScreen,
    ConfirmScreen,
    Dialog,
    WrongFieldError,
)
from quarterdeck.tui.known_services import KnownService, NotSupportedError, Surroundings
from quarterdeck.tui.options import QUIET, THEMES, quiet_hours
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.settings import listing
from quarterdeck.tui.settings.listing import SettingRow, SettingsList, SettingsPosition
from quarterdeck.tui.widgets.lines import FilterLine
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar

if TYPE_CHECKING:
    from quarterdeck.tui.app import Cockpit
    from quarterdeck.tui.notices import Route
    from quarterdeck.tui.theme_files import ThemeFiles


EMPTY = "Required."
NO_MATCHES = "No setting has these words."


class AskValueScreen(AskScreen, inherit_bindings=False):
    """`take` is given the typed text; the screen closes when that has succeeded."""

    DEFAULT_CSS = """
    AskValueScreen { background: $background 60%; &:ansi { background: transparent; } }
    AskValueScreen, SecretScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 96%;
            height: auto;
            padding: 1 2;
            background: $surface;
            border: round $border;
        }
        & Input { margin: 1 0; background: $boost; }
        & .title { text-style: bold; }
        & .dim { color: $text-muted; }
        & #secret { margin: 1 0; color: $text-success; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.ASKED
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KeyContext.DIALOG),
        *prompt_bindings(KeyContext.ASKED),
    ]

    def __init__(
        self,
        title: str,
        explained: str,
        take: Callable[[str], Awaitable[object]],
        *,
        secret: bool = False,
    ) -> None:
        super().__init__(title, [AskField("value", explained)], self._take_value, "save")
        self._take = take
        self._secret = secret
        self.typed = ""
        """The typed text, once it was accepted."""

    def compose(self) -> ComposeResult:
        (field,) = self._fields
        with Vertical():
            yield Static(one_line(self._heading), classes="title", markup=False)
            yield Static(one_line(field.label), classes="dim", markup=False)
            yield Input(password=self._secret, compact=True, id=field.name)
            yield Static(id=f"{field.name}-error", classes="error", markup=False)
            yield Static(id="form-error", classes="error", markup=False)
            done, cancel = (shown_key(action) for action in SETTINGS_PLACES[KeyContext.ASKED])
            yield Static(f"{done} save · {cancel} cancel", classes="dim", markup=False)

    def action_submit(self) -> None:
        """Accept the text, after what is still being typed."""
        self.call_later(super().action_submit)

    async def _take_value(self, values: Mapping[str, str]) -> None:
        if not values["value"]:
            raise WrongFieldError("value", EMPTY)
        try:
            await self._take(values["value"])
        except NotSupportedError as error:
            raise WrongFieldError("value", str(error)) from error
        self.typed = values["value"]


class SecretScreen(Dialog[None]):
    """Shows a text that is shown only once."""

    place: ClassVar[KeyContext] = KeyContext.SHOWN_ONCE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.SHOWN_ONCE)]
    DEFAULT_CSS = AskValueScreen.DEFAULT_CSS

    def __init__(self, title: str, secret: str) -> None:
        super().__init__()
        self._title = title
        self._shown = secret

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(one_line(self._title), classes="title", markup=False)
            yield Static("Shown once. Copy it now.", classes="dim")
            yield Static(one_line(self._shown), id="secret", markup=False)
            copy, close = (shown_key(action) for action in SETTINGS_PLACES[KeyContext.SHOWN_ONCE])
            yield Static(f"{copy} copy · {close} close", classes="dim", markup=False)

    def action_copy(self) -> None:
        """Copy to the clipboard, if the terminal accepts it."""
        from quarterdeck.tui.clipboard import copy_text

        copy_text(self.query_one("#secret", Static), self._shown)

    def action_close(self) -> None:
        """Close; the user has saved the secret."""
        self.dismiss(None)


class SettingsScreen(PageScreen):
    """A list for each part; Enter changes the row under the cursor, or carries it out.

    While words are typed into the filter line, its rows are those of all parts that have them.
    """

    home: ClassVar[KeyContext] = KeyContext.SETTINGS
    AUTO_FOCUS = "SettingsList"
    DEFAULT_CSS = """
    SettingsScreen TabBar { margin: 0 0 1 0; }
    SettingsScreen FilterLine { margin: 0 1; }
    """
    _positions: ClassVar[WeakKeyDictionary[AppState, SettingsPosition]] = WeakKeyDictionary()
    """Where the page was left."""

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._found = ServiceSettings(lambda: app_state.client)
        self._problem = ""
        self._terminal: Route | None = None
        """How notices reach the terminal, once it was found out."""
        self._at = self._positions.setdefault(app_state, SettingsPosition())

    def body(self) -> ComposeResult:
        yield TabBar()
        yield FilterLine("Find in all settings: words of a name, a value or an explanation")
        yield SettingsList()

    def on_mount(self) -> None:
        self.set_focus(self.listing)
        self.host.reload_themes()
        self._show_part(self._at.part)
        self._read()

    @property
    def listing(self) -> SettingsList:
        return self.query_one(SettingsList)

    @property
    def finder(self) -> FilterLine:
        """The line to find settings with."""
        return self.query_one(FilterLine)

    @property
    def host(self) -> "Cockpit":
        """The cockpit."""
        return cast("Cockpit", self.app)

    def _show(self, *, keep: bool = True) -> None:
        shown, words = self._rows(), self.finder.typed.strip()
        tabs = [
            Tab(part, f"{number} {part}", f"{number} {listing.SHORT.get(part, part)}")
            for number, part in enumerate(listing.PARTS, 1)
        ]
        self.query_one(TabBar).show(tabs, None if words else self._at.part)
        found = listing.matching(shown, words) if words else listing.in_part(shown, self._at.part)
        self.listing.empty = NO_MATCHES if words else ""
        self.listing.show_rows(found, keep=keep)
        if not words and (self._at.instead or not keep):
            self.listing.select(self._at.left)
            self._at.opened(self.listing.chosen or "")
        self.finder.show(sum(not row.head for row in found), sum(not row.head for row in shown), 0)

    def _rows(self) -> list[SettingRow]:
        around, options = self.host.surroundings, self.host.options
        current = around.current if around else self._app_state.connection.endpoint
        own = around is not None and around.own_machine
        file = str(around.file) if around else ""
        return [
            *listing.connection_rows(
                self._known(), current, self._beside, self._problem, more=around is not None
            ),
            *listing.option_rows(options, self.app.no_color),
            *listing.service_rows(self._found, own),
            *listing.notice_rows(options, self._terminal),
            *listing.key_rows(options, file),
        ]

    @property
    def _beside(self) -> dict[str, str]:
        """The notes of services that are shown beside the one in use."""
        return listing.notes_beside(self._services)

    def _any_changed(self, change: Change) -> None:
        super()._any_changed(change)
        if isinstance(change, ConnectionChanged) and self.display:
            self._show()

    def _known(self) -> list[KnownService]:
        around = self.host.surroundings
        if around is None:
            return [KnownService(self._app_state.connection.endpoint, "")]
        try:
            return around.known()
        except NotSupportedError as error:
            self._problem = str(error)
            return [KnownService(around.current, "")]

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        if not self.app.is_headless:
            self._terminal = await self.host.messenger.route()
            self._show()
        for part in ("agents", "credentials", "api_keys", "notifications"):
            await self._found.read(part)
            self._show()

    # parts

    def action_part(self, number: int) -> None:
        """Show a part by its number."""
        self._show_part(list(listing.PARTS)[number - 1])

    def action_next_part(self, by: int) -> None:
        """Show the next part, or a previous one."""
        parts = list(listing.PARTS)
        self._show_part(parts[(parts.index(self._at.part) + by) % len(parts)])

    @on(TabBar.Chosen)
    def _tab_chosen(self, event: TabBar.Chosen) -> None:
        self._show_part(event.key)

    def _show_part(self, part: str) -> None:
        if self.finder.typed.strip():
            self.finder.action_all()
        self._at.part = part
        self._show(keep=False)

    @on(SettingsList.Highlighted)
    def _note_row(self) -> None:
        if self.listing.chosen and not self.finder.typed.strip():
            self._at.note(self.listing.chosen)

    def action_find(self) -> None:
        """Find settings in all parts."""
        self.finder.start()

    @on(FilterLine.Changed)
    def _find(self) -> None:
        self._show(keep=False)

    @on(FilterLine.Left)
    def _leave_finder(self) -> None:
        self.set_focus(self.listing)

    def action_back(self) -> None:
        """Show a part again after a search, else close the page."""
        if self.finder.typed.strip():
            self.finder.action_all()
        else:
            super().action_back()

    # actions of a line

    @on(SettingsList.Chosen)
    def action_change(self) -> None:
        """Change the row under the cursor, or carry it out."""
        row = self.listing.chosen_row
        if row is None:
            return
        match row.action:
            case "connect":
                self._connect(row.about)
            case "new-connection":
                self._ask_connection()
            case "setting":
                self._change(row.about)
            case "quiet":
                self._ask_quiet()
            case "install":
                self._install(row.about)
            case "credential":
                self._ask_credential(row.about)
            case "provider":
                self._ask_provider()
            case "new-key":
                self._ask_key()
            case "target":
                self._ask_target()
            case _:
                pass

    def action_add(self) -> None:
        """Add to the part under the cursor."""
        row = self.listing.chosen_row
        match row.part if row is not None else "":
            case listing.CONNECTIONS:
                self._ask_connection()
            case listing.API_KEYS:
                self._ask_key()
            case listing.CREDENTIALS:
                self._ask_provider()
            case part:
                others = f"{listing.CONNECTIONS}, {listing.CREDENTIALS} and {listing.API_KEYS}"
                self.tell("information", part, f"Nothing to add here; only to {others}.")

    def action_show_beside(self) -> None:
        """Show the service under the cursor beside the one in use, or no longer."""
        row, around = self.listing.chosen_row, self.host.surroundings
        if row is None or row.action != "connect" or around is None or row.about == around.current:
            return
        name = row.about
        known = next(one for one in self._known() if one.name == name)
        shown = known.beside and (known.repeated or name in self._beside)
        try:
            around.show_beside(name, not shown)
            found = next((one for one in around.beside() if one.name == name), None)
        except NotSupportedError as error:
            self.tell("error", name, str(error))
            return
        if shown:
            self.host.hide(name)
        elif found is not None:
            self.host.show_beside(found)
        self._show()

    def action_read(self) -> None:
        """Read everything again."""
        self.host.reload_themes()
        self._read()

    def action_test(self) -> None:
        """Send a test notification to the configured address."""
        self._carry_out("Notification", self._try_target())

    async def _try_target(self) -> None:
        if not await self._app_state.client.chatapp.test():
            raise NotSupportedError("Test failed; check the URL.")
        self.tell("information", "Notification", "Test notification sent.")

    def _ask_quiet(self) -> None:
        async def take(typed: str) -> None:
            hours = "" if typed == "none" else typed
            try:
                quiet_hours(hours)
            except ValueError as error:
                raise NotSupportedError(str(error)) from error
            self._set(QUIET, hours)

        explained = "Such as 22:00-07:00, in local time; or none."
        self._ask(AskValueScreen("Quiet hours", explained, take))

    def _change(self, name: str) -> None:
        """Go to the next value of a setting, or choose among several themes of one's own."""
        self.host.reload_themes()
        own = self.host.options.own_themes
        if name == "theme" and own is not None and (own.themes or own.faults):
            self._choose_theme(own)
        else:
            self._set(name, listing.next_choice(self.host.options, name))

    @work
    async def _choose_theme(self, own: "ThemeFiles") -> None:
        from quarterdeck.tui.theme_files import hard_to_read

        choices = [
            *(Choice(name, listing.theme_label(name, self.host.options)) for name in THEMES),
            *(Choice(name, listing.theme_label(name, self.host.options)) for name in own.themes),
            *(Choice(fault, fault, usable=False) for fault in own.faults),
        ]
        chosen = await self.app.push_screen_wait(ChooseScreen("Theme", choices))
        if chosen is None:
            return
        self._set("theme", chosen)
        if chosen in own.themes and (faint := hard_to_read(own.themes[chosen])):
            more = f"{len(faint) - 1} more: qd doctor." if len(faint) > 1 else ""
            self.tell("warning", f"Theme {chosen}", f"{faint[0]} {more}".strip())

    def _set(self, name: str, value: str | bool) -> None:
        self.host.set_option(name, value)
        around = self.host.surroundings
        try:
            if around is not None:
                around.keep(name, value)
        except NotSupportedError as error:
            self.tell("warning", "Not saved", str(error))
        self._show()

    @work(exclusive=True, group="connect")
    async def _connect(self, name: str) -> None:
        around = self.host.surroundings
        if around is None or name == around.current:
            return
        try:
            service = await around.connect(name)
        except NotSupportedError as error:
            self._problem = str(error)
            self._show()
            return
        # Not from here: this page closes with the service it shows.
        self.app.call_later(self.host.move_to, service)

    @work
    async def _ask_connection(self) -> None:
        around = self.host.surroundings
        if around is None:
            return
        if await self.app.push_screen_wait(new_connection(around)) is not None:
            self._problem = ""
            self._show()

    @work(exclusive=True, group="install")
    async def _install(self, agent: str) -> None:
        around = self.host.surroundings
        if around is None:
            return
        self.tell("information", agent, "Installing.")
        try:
            await around.install(agent, lambda line: self.sub_title_of(agent, line))
        except NotSupportedError as error:
            self.tell("error", f"{agent} was not installed", str(error))
        else:
            self.tell("information", agent, "Installed; replicas see it when they start.")
        finally:
            self._found.progress.pop(agent, None)
        await self._found.read("agents")
        self._show()

    def sub_title_of(self, agent: str, line: str) -> None:
        """Show the output of an installation, on the agent's line."""
        self._found.progress[agent] = one_line(line)
        self._show()

    def _ask_credential(self, provider: str) -> None:
        async def take(key: str) -> None:
            await self._found.set_credential(provider, key)

        explained = "Replicas started from now on get it. It is not shown again."
        self._ask(AskValueScreen(f"Key of {provider}", explained, take, secret=True))

    @work
    async def _ask_provider(self) -> None:
        async def take(name: str) -> None:
            await self._app_state.client.credentials.get(name)

        explained = "Provider name in lower case, as in the name of its agent."
        asking = AskValueScreen("Provider", explained, take)
        if await self.app.push_screen_wait(asking):
            self._ask_credential(asking.typed)

    @work
    async def _ask_key(self) -> None:
        around = self.host.surroundings
        if around is None:
            return
        keys: list[str] = []

        async def take(name: str) -> None:
            keys.append(await around.make_key(name))

        explained = "Programs show the key to this service and act as you."
        asking = AskValueScreen("Name of the new key", explained, take)
        if await self.app.push_screen_wait(asking):
            await self.app.push_screen_wait(SecretScreen(f"API key {asking.typed}", keys[0]))
            await self._found.read("api_keys")
            self._show()

    def _ask_target(self) -> None:
        explained = "Such as ntfy://host/topic. It holds secrets, so it is not shown again."
        self._ask(
            AskValueScreen("Address of notifications", explained, self._found.send_to, secret=True)
        )

    @work
    async def _ask(self, asking: AskValueScreen) -> None:
        await self.app.push_screen_wait(asking)
        self._show()

    def action_remove(self) -> None:
        """Remove the row under the cursor, after a confirmation."""
        row = self.listing.chosen_row
        around = self.host.surroundings
        if row is not None and (texts := _removal(row)):
            self._remove(row, *texts)
        elif row is not None and row.action == "connect" and around is not None:
            self.tell("information", row.name, f"Remove it by hand, in {around.file}.")

    @work
    async def _remove(self, row: SettingRow, question: str, consequence: str) -> None:
        if not await self.app.push_screen_wait(ConfirmScreen(question, consequence, "Remove")):
            return
        match row.action:
            case "credential":
                self._carry_out(row.name, self._found.remove_credential(row.about))
            case "key":
                self._carry_out(row.name, self._found.revoke(UUID(row.about)))
            case _:
                self._carry_out(row.name, self._found.send_nowhere())

    @work
    async def _carry_out(self, subject: str, request: Awaitable[None]) -> None:
        try:
            await request
        except ClientError as error:
            self.tell("error", subject, f"{error} {error.next_step}")
        except NotSupportedError as error:
            self.tell("error", subject, str(error))
        self._show()


def _removal(row: SettingRow) -> tuple[str, str] | None:
    """Return the question before a line's subject is removed; None when it cannot be."""
    name = one_line(row.name)
    match row.action:
        case "credential" if row.value != "none":
            return f"Remove the key of {name}?", "Replicas started from now on do not get it."
        case "key":
            return f"Revoke {name}?", "Programs that use it are refused at once."
        case "target" if row.value != "none":
            return "Send no notifications?", "The address is forgotten."
        case _:
            return None


class NewConnection(BaseModel):
    """A service: its name, its address, and the key to use."""

    name: Annotated[str, Bounds(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
    address: Annotated[str, Bounds(pattern=r"^(https?://[^\s/]\S*|unix:/.+)$", max_length=2048)]
    key: Annotated[str, Bounds(pattern=r"^[!-~]+$", max_length=4096)] | None = None


FIELDS = (
    Field("name", rule="Letters, digits, - and _"),
    Field(
        "address",
        rule="Starts with http://, https:// or unix:/",
        placeholder="https://service.example",
    ),
    Field(
        "key",
        help="Without one, get it later: qd auth login --profile NAME.",
        rule="A key has no blanks",
        secret=True,
    ),
)


def new_connection(around: Surroundings) -> FormScreen[str]:
    """Return a form dismissed with the service's name, which is in the configuration file by then."""

    async def save(body: NewConnection) -> str:
        try:
            if any(connection.name == body.name for connection in around.known()):
                raise InvalidValueError(Refusal({"name": "Name already in use."}))
            around.add(body.name, body.address, body.key)
        except NotSupportedError as error:
            raise InvalidValueError(Refusal(general=str(error))) from None
        return body.name

    form = ModelForm(NewConnection, FIELDS)
    carry_out = cast("Callable[[BaseModel], Awaitable[str]]", save)
    return FormScreen("New connection", form, carry_out, verb="Add")

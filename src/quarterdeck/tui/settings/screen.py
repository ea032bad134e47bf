"""The settings page: what each line does is here, what is shown is in `rows`."""

from collections.abc import Awaitable
from typing import ClassVar, cast
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.settings import ServiceSettings
from quarterdeck.tui.actions import Where
from quarterdeck.tui.screens.confirm import ConfirmScreen
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.settings import rows
from quarterdeck.tui.settings.ask import AskScreen, SecretScreen
from quarterdeck.tui.settings.host import Host
from quarterdeck.tui.settings.listing import SettingsList
from quarterdeck.tui.settings.rows import Row
from quarterdeck.tui.surroundings import Known, NotPossible
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys


class SettingsScreen(PageScreen):
    """One list; Enter changes what is under the cursor, or does it."""

    home: ClassVar[Where] = Where.SETTINGS
    AUTO_FOCUS = "SettingsList"

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self._found = ServiceSettings(lambda: deck.client)
        self._problem = ""

    def body(self) -> ComposeResult:
        yield SettingsList()

    def on_mount(self) -> None:
        self.set_focus(self.listing)
        self._show()
        self._read()

    @property
    def listing(self) -> SettingsList:
        return self.query_one(SettingsList)

    @property
    def host(self) -> Host:
        """The cockpit, as far as it can be set."""
        return cast("Host", self.app)

    def _show(self) -> None:
        around, options = self.host.surroundings, self.host.options
        current = around.current if around else self._deck.connection.endpoint
        own = around is not None and around.own_machine
        file = str(around.file) if around else ""
        shown = [
            *rows.connection_rows(self._known(), current, self._problem, more=around is not None),
            *rows.look_rows(options, self.app.no_color),
            *rows.service_rows(self._found, own),
            *rows.key_rows(options, file),
        ]
        self.listing.show(shown)

    def _known(self) -> list[Known]:
        around = self.host.surroundings
        if around is None:
            return [Known(self._deck.connection.endpoint, "")]
        try:
            return around.known()
        except NotPossible as error:
            self._problem = str(error)
            return [Known(around.current, "")]

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        for part in ("agents", "credentials", "api_keys", "notifications"):
            await self._found.read(part)
            self._show()

    # what a line does

    @on(SettingsList.Clicked)
    def action_change(self) -> None:
        """Changes what is under the cursor, or does it."""
        row = self.listing.chosen
        if row is None:
            return
        match row.deed:
            case "connect":
                self._connect(row.about)
            case "new-connection":
                self._ask_connection()
            case "setting":
                self._set(row.about)
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
        """Adds to the part where the cursor is."""
        row = self.listing.chosen
        match row.part if row is not None else "":
            case rows.CONNECTIONS:
                self._ask_connection()
            case rows.API_KEYS:
                self._ask_key()
            case rows.CREDENTIALS:
                self._ask_provider()
            case part:
                others = f"{rows.CONNECTIONS}, {rows.CREDENTIALS} and {rows.API_KEYS}"
                self.tell("information", part, f"Nothing is added here, only to {others}.")

    def action_read(self) -> None:
        """Reads everything again."""
        self._read()

    def action_test(self) -> None:
        """Sends a notification to where they go."""
        self._carry_out("Notification", self._try_target())

    async def _try_target(self) -> None:
        if not await self._deck.client.chatapp.test():
            raise NotPossible("It was not taken. Check the address.")
        self.tell("information", "Notification", "It was taken.")

    def _set(self, name: str) -> None:
        value = rows.next_choice(self.host.options, name)
        self.host.set_option(name, value)
        around = self.host.surroundings
        try:
            if around is not None:
                around.keep(name, value)
        except NotPossible as error:
            self.tell("warning", "For now only", str(error))
        self._show()

    @work(exclusive=True, group="connect")
    async def _connect(self, name: str) -> None:
        around = self.host.surroundings
        if around is None or name == around.current:
            return
        try:
            service = await around.connect(name)
        except NotPossible as error:
            self._problem = str(error)
            self._show()
            return
        # Not from here: this page goes with the service it shows.
        self.app.call_later(self.host.move_to, service)

    @work
    async def _ask_connection(self) -> None:
        from quarterdeck.tui.settings.connecting import new_connection

        around = self.host.surroundings
        if around is None:
            return
        hold_keys(self)
        if await self.app.push_screen_wait(new_connection(around)) is not None:
            self._problem = ""
            self._show()

    @work(exclusive=True, group="install")
    async def _install(self, agent: str) -> None:
        around = self.host.surroundings
        if around is None:
            return
        self.tell("information", agent, "It is being installed.")
        try:
            await around.install(agent, lambda line: self.sub_title_of(agent, line))
        except NotPossible as error:
            self.tell("error", f"{agent} was not installed", str(error))
        else:
            self.tell("information", agent, "It is installed; replicas see it when they start.")
        finally:
            self._found.progress.pop(agent, None)
        await self._found.read("agents")
        self._show()

    def sub_title_of(self, agent: str, line: str) -> None:
        """Shows what an installation prints, on the agent's line."""
        self._found.progress[agent] = one_line(line)
        self._show()

    def _ask_credential(self, provider: str) -> None:
        async def take(key: str) -> None:
            await self._found.set_credential(provider, key)

        explained = "Agents get it in replicas that start from now on. It is not shown again."
        self._ask(AskScreen(f"Key of {provider}", explained, take, secret=True))

    @work
    async def _ask_provider(self) -> None:
        async def take(name: str) -> None:
            await self._deck.client.credentials.get(name)

        explained = "Its name in small letters, as in the name of its agent."
        hold_keys(self)
        name = await self.app.push_screen_wait(AskScreen("Provider", explained, take))
        if name is not None:
            self._ask_credential(name)

    @work
    async def _ask_key(self) -> None:
        around = self.host.surroundings
        if around is None:
            return
        made: list[str] = []

        async def take(name: str) -> None:
            made.append(await around.make_key(name))

        explained = "Programs show the key to this service and act as you."
        hold_keys(self)
        name = await self.app.push_screen_wait(AskScreen("Name of the new key", explained, take))
        if name is not None:
            await self.app.push_screen_wait(SecretScreen(f"API key {name}", made[0]))
            await self._found.read("api_keys")
            self._show()

    def _ask_target(self) -> None:
        explained = "Such as ntfy://host/topic. It holds secrets, so it is not shown again."
        self._ask(
            AskScreen("Address of notifications", explained, self._found.send_to, secret=True)
        )

    @work
    async def _ask(self, asking: AskScreen) -> None:
        hold_keys(self)
        await self.app.push_screen_wait(asking)
        self._show()

    def action_remove(self) -> None:
        """Removes what is under the cursor, when a person is sure."""
        row = self.listing.chosen
        around = self.host.surroundings
        if row is not None and (told := _removal(row)):
            self._remove(row, *told)
        elif row is not None and row.deed == "connect" and around is not None:
            self.tell("information", row.name, f"It is removed by hand, in {around.file}.")

    @work
    async def _remove(self, row: Row, question: str, consequence: str) -> None:
        hold_keys(self)
        if not await self.app.push_screen_wait(ConfirmScreen(question, consequence, "Remove")):
            return
        match row.deed:
            case "credential":
                self._carry_out(row.name, self._found.remove_credential(row.about))
            case "key":
                self._carry_out(row.name, self._found.revoke(UUID(row.about)))
            case _:
                self._carry_out(row.name, self._found.send_nowhere())

    @work
    async def _carry_out(self, subject: str, deed: Awaitable[None]) -> None:
        try:
            await deed
        except ClientError as error:
            self.tell("error", subject, f"{error} {error.next_step}")
        except NotPossible as error:
            self.tell("error", subject, str(error))
        self._show()


def _removal(row: Row) -> tuple[str, str] | None:
    """What is asked before a line's subject is removed; None when it cannot be."""
    name = one_line(row.name)
    match row.deed:
        case "credential" if row.value != "none":
            return f"Remove the key of {name}?", "Replicas that start from now on have none."
        case "key":
            return f"Revoke {name}?", "Programs that use it are refused at once."
        case "target" if row.value != "nowhere":
            return "Send no notifications?", "The address is forgotten."
        case _:
            return None

"""The terminals of a replica: one shown, the others a key away, all of them alive in the sandbox."""

from uuid import UUID

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.terminal_source import LinkSource
from quarterdeck.tui.text import one_line

PREFIX_HELP = "ctrl+g: l list  1 chat  c new  n next  x close  ctrl+g itself"


class TerminalPane(Vertical):
    """Opens the replica's first terminal when it is shown, or finds those that are open."""

    DEFAULT_CSS = """
    TerminalPane {
        & #sessions { height: 1; color: $text-muted; padding: 0 1; }
        & #sessions.prefix { color: $text-warning; }
        & ContentSwitcher { height: 1fr; }
        & #trouble { padding: 1 2; color: $text-error; }
    }
    """

    class Left(Message):
        """The person goes elsewhere: `list` or `chat`."""

        def __init__(self, to: str) -> None:
            super().__init__()
            self.to = to

    class Titled(Message):
        """A title or session changed."""

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self._host = host
        self._replica_id = replica_id
        self._links: dict[str, TerminalLink] = {}
        self._titles: dict[str, str] = {}
        self._prefixed = False
        self._focus_wanted = False

    def compose(self) -> ComposeResult:
        yield Static("opening …", id="sessions", markup=False)
        yield ContentSwitcher()

    def on_mount(self) -> None:
        self._find_or_open()

    async def on_unmount(self) -> None:
        for link in self._links.values():
            await link.close()

    @property
    def current(self) -> TerminalView | None:
        """The terminal that is shown."""
        switcher = self.query_one(ContentSwitcher)
        return (
            switcher.visible_content if isinstance(switcher.visible_content, TerminalView) else None
        )

    def focus_terminal(self) -> None:
        """Gives the keys to the terminal that is shown, or to the first one when it opens."""
        self._focus_wanted = self.current is None
        if self.current is not None:
            self.screen.set_focus(self.current)

    @work(exclusive=True, group="sessions")
    async def _find_or_open(self) -> None:
        terminals = self._deck.client.terminals
        try:
            found = await terminals.list(self._replica_id)
            open_ones = [session for session in found if not session.exited]
            if not open_ones:
                open_ones = [await terminals.create(self._replica_id, *self._room())]
        except ClientError as error:
            self._say(f"{error} {error.next_step}")
            return
        for session in open_ones:
            await self._add(TerminalLink(self._deck.client, self._replica_id, session))

    @work(exclusive=True, group="sessions")
    async def _open(self) -> None:
        try:
            session = await self._deck.client.terminals.create(self._replica_id, *self._room())
        except ClientError as error:
            self._say(f"{error} {error.next_step}")
            return
        await self._add(TerminalLink(self._deck.client, self._replica_id, session))

    def _room(self) -> tuple[int, int]:
        size = self.query_one(ContentSwitcher).size
        return max(2, min(500, size.width)), max(1, min(200, size.height))

    async def _add(self, link: TerminalLink) -> None:
        key = f"terminal-{link.session.id.hex}"
        self._links[key] = link
        self._titles[key] = link.session.title
        switcher = self.query_one(ContentSwitcher)
        await switcher.add_content(
            TerminalView(LinkSource(link), self._host, id=key), set_current=True
        )
        self._show_sessions()
        if self._focus_wanted:
            self.focus_terminal()

    def _show_sessions(self) -> None:
        current = self.query_one(ContentSwitcher).current
        names = [
            f"[{number} {one_line(title)}]" if key == current else f" {number} {one_line(title)} "
            for number, (key, title) in enumerate(self._titles.items(), 1)
        ]
        line = self.query_one("#sessions", Static)
        line.set_class(self._prefixed, "prefix")
        line.update(PREFIX_HELP if self._prefixed else " ".join(names) or "no terminal is open")

    def _say(self, text: str) -> None:
        self.query_one("#sessions", Static).update(one_line(text))

    def on_terminal_view_title_changed(self, event: TerminalView.TitleChanged) -> None:
        if event.view.id in self._titles and event.title:
            self._titles[event.view.id] = event.title
            self._show_sessions()

    def on_terminal_view_prefix_pressed(self, event: TerminalView.PrefixPressed) -> None:
        event.stop()
        self._prefixed = True
        self._show_sessions()
        self.can_focus = True
        self.screen.set_focus(self)

    def on_key(self, event: Key) -> None:
        if not self._prefixed:
            return
        event.stop()
        event.prevent_default()
        self._prefixed = False
        self.can_focus = False
        self._show_sessions()
        match event.key:
            case "l" | "escape" | "left":
                self.post_message(self.Left("list"))
            case "1":
                self.post_message(self.Left("chat"))
            case "c":
                self._open()
            case "n":
                self._next()
            case "x":
                self._close_current()
            case "ctrl+g":
                self.focus_terminal()
                if self.current is not None:
                    self.current.send_prefix()
            case _:
                self.focus_terminal()

    def _next(self) -> None:
        keys = list(self._links)
        switcher = self.query_one(ContentSwitcher)
        if keys:
            at = keys.index(switcher.current) if switcher.current in keys else -1
            switcher.current = keys[(at + 1) % len(keys)]
        self._show_sessions()
        self.focus_terminal()

    @work(exclusive=True, group="sessions")
    async def _close_current(self) -> None:
        view = self.current
        if view is None or view.id is None:
            return
        link = self._links.pop(view.id)
        self._titles.pop(view.id, None)
        try:
            await self._deck.client.terminals.close(self._replica_id, link.session.id)
        except ClientError as error:
            self._say(f"{error} {error.next_step}")
        await link.close()
        await view.remove()
        if self._links:
            self._next()
        else:
            self._show_sessions()
            self.post_message(self.Left("list"))

"""The command palette: actions, commands of the agent, replicas and pages, found by a few of their letters.

Loaded when it is first opened.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from uuid import UUID

from rich.segment import Segment
from rich.style import Style
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.events import Click
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from quarterdeck.client.errors import ClientError
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.transcript.text import name_line
from quarterdeck.tui.actions import ACTIONS, Action, KeyContext, keys_of, prompt_bindings, shown_key
from quarterdeck.tui.actions.model import AROUND, OWN
from quarterdeck.tui.fuzzy import FuzzyMatch, ranked
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.tui.kit.key_context import key_context_of
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.chat_completions import agent_commands
from quarterdeck.tui.panes.chat_messages import asks_for_text
from quarterdeck.tui.screens.commands import ARCHIVE, INTERRUPT, SLEEP, WAKE, ReplicaAction
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.screens.page import PAGES
from quarterdeck.tui.settings.listing import PARTS, SETTINGS, SettingRow, head
from quarterdeck.tui.settings.screen import SettingsScreen
from quarterdeck.tui.text import fit, wrapped
from quarterdeck.tui.textual_ext.type_ahead import KeyHold, TypeAhead, hold_keys
from quarterdeck.tui.themes import MARKS, part_style
from quarterdeck.tui.widgets.completions import Completion
from quarterdeck.wire.search import SearchHit

SELF = "app.palette"
PAGE = "page."
"""Prefix of the ids of actions that open a page; the page's name follows."""
STATE_COMMANDS: dict[str, ReplicaAction] = {
    "chat.interrupt": INTERRUPT,
    "replica.sleep": SLEEP,
    "replica.wake": WAKE,
    "replica.archive": ARCHIVE,
}
"""Actions that have no effect on a replica in some states."""
OF_A_REPLICA = ("replica.", "chat.", "tab.")
"""Actions with such ids need a replica, except `replica.new`."""


@dataclass(frozen=True)
class PaletteEntry:
    """One line. `action` (which `node` carries out), `command`, `replica_id`, `page` or `hit` says what it does.

    `command` is one of the agent of a chat, whose pane is `node`; `setting` is a row of the settings page.
    """

    text: str
    note: str = ""
    kind: str = ""
    action: Action | None = None
    node: DOMNode | None = None
    command: Completion | None = None
    replica_id: UUID | None = None
    page: str = ""
    setting: SettingRow | None = None
    hit: SearchHit | None = None

    @property
    def searched(self) -> str:
        """The text, and the other words under which the line is known."""
        brief = self.action.brief if self.action else ""
        return " ".join(part for part in (self.text, self.kind, brief) if part)


def entries(
    screen: Screen[object], states: Iterable[ReplicaState], meant: list[ReplicaState]
) -> list[PaletteEntry]:
    """Return all entries. `meant` are the replicas that commands apply to."""
    return [*_actions(screen, meant), *_pages(), *_replicas(states), *_settings()]


def _actions(screen: Screen[object], meant: list[ReplicaState]) -> Iterator[PaletteEntry]:
    seen: set[str] = {SELF}
    for where in _places(screen):
        for action in ACTIONS[where]:
            known = not seen.isdisjoint((action.id, action.help))
            if known or _opens_page(action) or not _makes_sense(action, meant):
                continue
            node = _who_does(action, screen, own=where == _where(screen))
            if node is not None:
                seen |= {action.id, action.help}
                yield PaletteEntry(action.help, shown_key(action), action=action, node=node)
    if (chat := _chat_beside(screen)) is not None:
        for action in (*ACTIONS[KeyContext.READING], *ACTIONS[KeyContext.CHATS]):
            name = action.method.partition("(")[0]
            if action.id not in seen and name and _has(chat, name):
                yield PaletteEntry(
                    action.help, action=action, node=chat
                )  # its key works there only


def _chat_beside(screen: Screen[object]) -> ChatPane | None:
    """Return the chat that is shown next to the list while the list has the focus."""
    if not isinstance(screen, MainScreen) or _where(screen) is not KeyContext.LIST:
        return None
    pane, chosen = screen.pane, screen.chosen
    shows_it = pane is not None and chosen is not None and pane.replica_id == chosen.id
    return pane.chat if pane is not None and shows_it else None


def _commanded_chat(screen: Screen[object]) -> ChatPane | None:
    """Return the chat around the focus, or next to the list, if a command can be its next message."""
    around = screen.focused.ancestors if screen.focused else []
    inside = next((node for node in around if isinstance(node, ChatPane)), None)
    chat = inside or _chat_beside(screen)
    return chat if chat is not None and asks_for_text(chat.chat) is None else None


def _where(screen: Screen[object]) -> KeyContext:
    where = getattr(screen, "where", None)
    return (
        where
        if isinstance(where, KeyContext)
        else key_context_of(screen.focused, KeyContext.ANYWHERE)
    )


def _places(screen: Screen[object]) -> list[KeyContext]:
    """Return the place of the focus, then that of the screen itself."""
    here = _where(screen)
    around = [
        *AROUND.get(here, ()),
        *([KeyContext.TERMINAL_COMMAND] if here is KeyContext.TERMINAL else []),
        KeyContext.LIST,
        KeyContext.TABS,
        KeyContext.PAGE,
        KeyContext.ANYWHERE,
    ]
    return list(dict.fromkeys([here, *around]))


def _makes_sense(action: Action, meant: list[ReplicaState]) -> bool:
    if action.id == "replica.new" or not action.id.startswith(OF_A_REPLICA):
        return True
    command = STATE_COMMANDS.get(action.id)
    if command is not None:
        return any(not command.unfit(state) for state in meant)
    return bool(meant)


def _who_does(action: Action, screen: Screen[object], *, own: bool) -> DOMNode | None:
    """Return the node that carries the action out from here, None when there is none."""
    if not action.method:
        # The focused widget handles the key.
        return screen.focused if own and action.brief and keys_of(action) else None
    name = action.method.partition("(")[0]
    if name.startswith(OWN):
        return screen.focused if own else None
    if name.startswith("app."):
        return cast("App[Any]", screen.app)
    if name.startswith("screen."):
        return screen if _has(screen, name.removeprefix("screen.")) else None
    around: list[DOMNode] = screen.focused.ancestors_with_self if screen.focused else [screen]
    return next((node for node in around if _has(node, name)), None)


def _has(node: DOMNode, name: str) -> bool:
    return hasattr(node, f"action_{name}") and node.check_action(name, ()) is True


def _opens_page(action: Action) -> bool:
    return action.id.startswith(PAGE) and action.id.removeprefix(PAGE) in PAGES


def _pages() -> Iterator[PaletteEntry]:
    """Yield the full screens, which open from any place."""
    opening = {action.id: action for actions in ACTIONS.values() for action in actions}
    for name in PAGES:
        action = opening.get(f"{PAGE}{name}")
        yield PaletteEntry(
            action.help if action else name.capitalize(),
            shown_key(action) if action else "",
            "go to",
            page=name,
        )


def _replicas(states: Iterable[ReplicaState]) -> Iterator[PaletteEntry]:
    for state in states:
        mark = MARKS[state.attention]
        yield PaletteEntry(
            name_line(state.full_name), f"{mark.sign} {mark.word}", "go to", replica_id=state.id
        )


def _settings() -> Iterator[PaletteEntry]:
    """Yield the settings of the cockpit, and the other sections of their page."""
    for sections in PARTS.values():
        for section in sections:
            names = SETTINGS.get(section, {})
            for name, label in names.items():
                row = SettingRow(section, label, action="setting", about=name)
                yield PaletteEntry(label, section, "setting", page="settings", setting=row)
            if not names:
                yield PaletteEntry(
                    section, "Settings", "go to", page="settings", setting=head(section)
                )


NOTHING = "No matches."
FOUND = Style(bold=True, underline=True)


class PaletteChoices(Widget):
    """The matching entries with a cursor; only those that fit are shown."""

    COMPONENT_CLASSES = {"choices--cursor", "choices--dim"}
    DEFAULT_CSS = """
    PaletteChoices {
        height: 1fr;
        & > .choices--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
        & > .choices--dim { color: $text-muted; }
    }
    """

    class Chosen(Message):
        """A line was clicked."""

    def __init__(self, empty: str = NOTHING) -> None:
        super().__init__()
        self._empty = empty
        self._found: list[tuple[PaletteEntry, FuzzyMatch]] = []
        self._cursor = 0
        self._top = 0

    def show(self, found: list[tuple[PaletteEntry, FuzzyMatch]], empty: str = NOTHING) -> None:
        """Show other lines, or `empty` in place of none; the cursor is on the first."""
        self._found, self._empty = found, empty
        self._cursor = self._top = 0
        self.refresh()

    @property
    def chosen(self) -> PaletteEntry | None:
        """The entry under the cursor."""
        return self._found[self._cursor][0] if self._found else None

    def select(self, entry: PaletteEntry) -> None:
        """Move the cursor to an entry, if it is shown."""
        self.move(next((n for n, (one, _) in enumerate(self._found) if one is entry), 0))

    def move(self, by: int) -> None:
        """Move the cursor, wrapping around."""
        if not self._found:
            return
        if abs(by) == 1:
            self._cursor = (self._cursor + by) % len(self._found)
        else:
            self._cursor = max(0, min(self._cursor + by, len(self._found) - 1))
        height = max(1, self.size.height)
        self._top = max(min(self._top, self._cursor), self._cursor - height + 1)
        self.refresh()

    def on_click(self, event: Click) -> None:
        if self._top + event.y < len(self._found):
            self._cursor = self._top + event.y
            self.post_message(self.Chosen())

    def on_mouse_scroll_down(self) -> None:
        self.move(1)

    def on_mouse_scroll_up(self) -> None:
        self.move(-1)

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        dim = base + part_style(self, "choices--dim")
        at = self._top + y
        if not self._found and y < len(rows := wrapped(self._empty, width)):
            return Strip([Segment(fit(rows[y], width), dim)])
        if at >= len(self._found):
            return Strip.blank(width, base)
        if at == self._cursor:
            base = dim = self.get_component_rich_style("choices--cursor")
        return Strip(_line(*self._found[at], width, base, dim))


def _line(
    entry: PaletteEntry, found: FuzzyMatch, width: int, base: Style, dim: Style
) -> list[Segment]:
    """Return kind, text with the matching letters marked, and note."""
    kind = f" {entry.kind} " if entry.kind else " "
    room = max(4, width - len(kind) - len(entry.note) - 3)
    text = fit(entry.text, room)
    places = {place for place in found.places if place < len(text)}
    segments = [Segment(kind, dim)]
    segments += [
        Segment(character, base + FOUND if n in places else base)
        for n, character in enumerate(text)
    ]
    note = fit(entry.note, max(0, width - len(kind) - room - 1))
    return [*segments, Segment(" ", base), Segment(note, dim)]


class PaletteScreen(Dialog[PaletteEntry | None]):
    """Dismissed with the chosen entry."""

    DEFAULT_CSS = """
    PaletteScreen {
        align: center top;
        & > Vertical {
            width: 76;
            max-width: 96%;
            height: 22;
            max-height: 90%;
            margin-top: 1;
            padding: 0 1;
            background: $surface;
            border: round $border;
        }
        & Input { background: $boost; margin-bottom: 1; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.PALETTE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.PALETTE)]

    def __init__(self, entries: list[PaletteEntry], chat: ChatPane | None = None) -> None:
        """Add the commands of the agent of `chat` when they are read."""
        super().__init__()
        self._entries = entries
        self._chat = chat
        self._all_read = asyncio.Event()

    def compose(self) -> ComposeResult:
        with Vertical():
            field = Input(placeholder="Search commands and replicas", compact=True)
            field.cursor_blink = False
            yield field
            yield PaletteChoices()

    def on_mount(self) -> None:
        self._show("")
        self.set_focus(self.query_one(Input))
        self._read_commands()

    @work
    async def _read_commands(self) -> None:
        try:
            if self._chat is not None:
                self._add_commands(self._chat, await agent_commands(self._chat.shown))
        except ClientError:
            pass  # the composer says so when it completes one
        finally:
            self._all_read.set()

    def _add_commands(self, chat: ChatPane, commands: list[Completion]) -> None:
        chosen = self._choices.chosen
        self._entries += [
            PaletteEntry(f"{one.insert} {one.detail}", kind="chat", command=one, node=chat)
            for one in commands
        ]
        self._show(self.query_one(Input).value)
        if chosen is not None:
            self._choices.select(chosen)  # what the user may be about to run

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, query: str) -> None:
        self._choices.show(self._found(query))

    def _found(self, query: str) -> list[tuple[PaletteEntry, FuzzyMatch]]:
        # Without the slash that a command begins with in a message: the cockpit's own are actions here.
        return ranked(query.removeprefix("/"), self._entries, lambda entry: entry.searched)

    @property
    def _choices(self) -> PaletteChoices:
        return self.query_one(PaletteChoices)

    def action_move(self, by: int) -> None:
        """Move to another line."""
        self._choices.move(by)

    @on(PaletteChoices.Chosen)
    def action_run(self) -> None:
        """Choose the entry under the cursor."""
        # Through the queue: what was typed before Enter is in the field by then.
        self.call_later(self._run, hold_keys(self, "Reading the agent's commands"))

    @work
    async def _run(self, hold: KeyHold) -> None:
        with hold:
            query = self.query_one(Input).value
            if query.startswith("/") or not self._found(query):
                await self._all_read.wait()
            found = self._found(query)
            chosen = self._choices.chosen
            if chosen is None or all(entry is not chosen for entry, _ in found):
                # The field is ahead of the lines that are shown.
                chosen = found[0][0] if found else None
            if chosen is not None and self.is_current:
                self.dismiss(chosen)

    def action_close(self) -> None:
        """Close."""
        self.dismiss(None)


async def run_palette(app: App[Any], services: Services) -> None:
    """Ask for an entry, and carry it out where the user was."""
    screen: Screen[object] = app.screen
    chosen = await app.push_screen_wait(
        PaletteScreen(entries(screen, services.ordered(), _meant(screen)), _commanded_chat(screen))
    )
    if chosen is None:
        return
    with hold_keys(screen, chosen.text):
        if chosen.replica_id is not None:
            (await main_screen(app)).go_to(chosen.replica_id)
        elif chosen.page:
            (await main_screen(app)).action_page(chosen.page)
            if chosen.setting is not None:
                app.screen.call_after_refresh(_go_to_setting, app.screen, chosen.setting)
        else:
            await _act(app, screen, chosen)


def _go_to_setting(page: Screen[object], row: SettingRow) -> None:
    """Show the part of the settings page that has a row, with the cursor on it."""
    if isinstance(page, SettingsScreen):
        parts = list(PARTS.values())
        page.action_part(1 + next(n for n, part in enumerate(parts) if row.part in part))
        if row.key is not None:
            page.listing.select(row.key)


def _meant(screen: Screen[object]) -> list[ReplicaState]:
    return screen.meant if isinstance(screen, MainScreen) else []


async def main_screen(app: App[Any]) -> MainScreen:
    """Return the main screen, with nothing over it."""
    while not isinstance(app.screen, MainScreen):
        await app.pop_screen()
    return app.screen


async def _act(app: App[Any], screen: Screen[object], entry: PaletteEntry) -> None:
    action, node = entry.action, entry.node
    if node is None or app.screen is not screen:
        return
    if entry.command is not None and isinstance(node, ChatPane):
        if asks_for_text(node.chat) is not None:
            return  # asked meanwhile: the command would be the answer
        node.composer.begin_command(entry.command)
        if node.composer.text:
            screen.set_focus(node.composer)
    elif action is None:
        return
    elif action.method:
        await app.run_action(action.method.removeprefix("own."), default_namespace=node)
    elif isinstance(app, TypeAhead):
        app.press_next(keys_of(action)[0])

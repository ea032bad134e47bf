"""Rows of the settings, and the parts that they are shown in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from quarterdeck.store.services import Services
from quarterdeck.store.settings import ServiceSettings
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import ACTIONS, Action, KeyContext, keyed, prompt_bindings, shown_keys
from quarterdeck.tui.actions.model import is_rebound
from quarterdeck.tui.actions.pages import SETTINGS_PARTS
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.rows import ColumnCell, RowList, columns
from quarterdeck.tui.kit.spans import Emphasis, Line, TextRole
from quarterdeck.tui.known_services import KnownService
from quarterdeck.tui.options import THEME_DIRECTORY, THEMES, Options
from quarterdeck.tui.widgets.status_line import connection_words
from quarterdeck.wire.agents import Agent, CredentialStatus

if TYPE_CHECKING:
    from quarterdeck.tui.notices import Route

CONNECTIONS = "Connections"
LOOK = "Appearance and terminal"
NOTICES = "In this terminal"
AGENTS = "Agents"
CREDENTIALS = "Provider credentials"
API_KEYS = "API keys"
NOTIFICATIONS = "From the service"
KEYS = "Keys"

_SECTIONS = (
    (LOOK,),
    (AGENTS, CREDENTIALS),
    (CONNECTIONS, API_KEYS),
    (NOTICES, NOTIFICATIONS),
    (KEYS,),
)
PARTS: dict[str, tuple[str, ...]] = dict(zip(SETTINGS_PARTS, _SECTIONS, strict=True))
"""The parts of the page, and the sections of each."""


@dataclass
class SettingsPosition:
    """The part that is shown, and the row under the cursor of each part."""

    part: str = next(iter(PARTS))
    cursors: dict[str, str] = field(default_factory=dict[str, str])
    instead: str = ""
    """The row under the cursor as long as the one where the part was left is not read yet."""

    @property
    def left(self) -> str:
        """The row where the part was left."""
        return self.cursors.get(self.part, "")

    def opened(self, row: str) -> None:
        """Note the row that the cursor is on because there was no other, or the one that was left."""
        self.instead = row if row != self.left else ""

    def note(self, row: str) -> None:
        """Note the row under the cursor."""
        if row != self.instead:
            self.cursors[self.part], self.instead = row, ""


SHORT = {"Agents and credentials": "Agents", "Notifications": "Notices"}
"""Names of parts where not all fit."""

SETTINGS: dict[str, dict[str, str]] = {
    LOOK: {
        "theme": "Theme",
        "motion": "Motion",
        "mouse": "Mouse",
        "clipboard": "Clipboard access",
        "calls": "Ended tool calls",
        "editing": "Composer keys",
        "images": "Images",
    },
    NOTICES: {
        "notices": "Notices",
        "notices_asking": "When it asks",
        "notices_plan": "When a plan waits",
        "notices_failed": "When it failed",
        "notices_done": "When it is done",
    },
}
"""The settings of the cockpit, by section."""
ABOUT = {NOTICES: "while a cockpit is open, of replicas that you are not looking at"}
EXPLAINED = {
    "dark": "",
    "light": "",
    "ansi": "your terminal's own 16 colors",
    "auto": "reduced over SSH",
    "full": "",
    "reduced": "no animation",
    "osc": "a message to your terminal",
    "bell": "the bell",
    "desktop": "",
    "off": "",
    "ask": "ask before a terminal program writes the clipboard",
    "refuse": "never",
    "edits": "with the changes of edits",
    "output": "with changes and the end of their output",
    "folded": "one line each; enter opens one",
    "standard": "",
    "vim": "normal and insert mode, as in vim",
    "True": "",
    "False": "your terminal selects text itself",
}
IMAGES_EXPLAINED = {
    "auto": "the best that the terminal says it can show",
    "kitty": "pixels, by kitty's protocol",
    "sixel": "pixels",
    "blocks": "two colors per cell",
    "off": "a line of text",
}
NAME, VALUE = 26, 30
"""Width of the columns where there is room."""


@dataclass(frozen=True)
class SettingRow:
    """`action` and `value` identify the action; a row without an action is read-only.

    `head` starts a part. `mark` is one cell before the name.
    """

    part: str
    name: str
    value: str = ""
    note: str = ""
    action: str = ""
    about: str = ""
    mark: str = ""
    head: bool = False

    @property
    def key(self) -> str | None:
        """The key of the line; None for a heading."""
        if self.head:
            return None
        return "\0".join((self.part, self.action, self.about or self.action or self.name))

    def lines(self, width: int, height: int) -> Sequence[Line]:
        name, note = one_line(self.name), one_line(self.note)
        if self.head:
            head = ColumnCell(name, TextRole.HEADING, marks=Emphasis.BOLD)
            return (columns(width, head, ColumnCell("  "), ColumnCell(note, TextRole.DIM, -1)),)
        sign = ColumnCell(f" {self.mark or ' '} ", TextRole.WARNING)
        if not self.value and not note:
            return (columns(width, sign, ColumnCell(name, width=-1)),)
        of_name, of_value = (NAME, VALUE) if width >= 100 else (18, 16)
        return (
            columns(
                width,
                sign,
                ColumnCell(name, width=of_name - 1),
                ColumnCell(" "),
                ColumnCell(one_line(self.value), width=of_value - 1),
                ColumnCell(" "),
                ColumnCell(note, TextRole.DIM, -1),
            ),
        )


def head(part: str, note: str = "") -> SettingRow:
    """Return the heading of a part."""
    return SettingRow(part, part, note=note, head=True)


def connection_rows(
    known: list[KnownService],
    current: str,
    shown: Mapping[str, str],
    problem: str,
    *,
    more: bool,
) -> Iterator[SettingRow]:
    """Yield the rows of the connections.

    `shown` are the notes of those beside the current one; `more` is whether others can be added.
    """
    yield head(CONNECTIONS)
    for connection in known:
        here = connection.name == current
        note = _connection_note(connection, here, shown.get(connection.name))
        yield SettingRow(
            CONNECTIONS,
            connection.name,
            connection.shown,
            note,
            "connect",
            connection.name,
            "●" if here else "○" if connection.name in shown else "",
        )
    if more:
        note = keyed("{settings.change} to add")
        yield SettingRow(CONNECTIONS, "Add connection", note=note, action="new-connection")
    if problem:
        yield SettingRow(CONNECTIONS, problem, mark="✗")


def notes_beside(services: Services) -> dict[str, str]:
    """Return what is noted of the services beside the current one, by name."""
    notes: dict[str, str] = {}
    for store in services.stores[1:]:
        state = store.connection
        note = f"shown: {state.problem or connection_words(state)}"
        if count := services.repeated(store):
            note += f" · {count} of its replicas shown as another service's"
        notes[state.name] = note
    return notes


def _connection_note(service: KnownService, here: bool, shown: str | None) -> str:
    if here:
        return "connected"
    if shown is not None:
        return shown
    if service.repeated:
        return "shown, under another name: it is the same service"
    if service.beside:
        return keyed("not shown by this cockpit yet · {settings.show} to show beside")
    return keyed("{settings.change} to switch · {settings.show} to show beside")


def option_rows(options: Options, no_color: bool) -> Iterator[SettingRow]:
    """Yield the rows of the cockpit's own settings."""
    for section, settings in SETTINGS.items():
        yield head(section, ABOUT.get(section, ""))
        for name, label in settings.items():
            value = getattr(options, name)
            note = EXPLAINED.get(str(value), "")
            if name == "theme" and value not in THEMES:
                note = f"your own: {THEME_DIRECTORY}/{value}.toml"
            if name == "images":
                note = IMAGES_EXPLAINED[value]
            if name == "theme" and no_color:
                note = "NO_COLOR is set: no color is sent"
            shown = ("on" if value else "off") if isinstance(value, bool) else str(value)
            yield SettingRow(section, label, shown, note, "setting", name)


def in_part(rows: Sequence[SettingRow], part: str) -> list[SettingRow]:
    """Return the rows of a part, its sections apart."""
    found: list[SettingRow] = []
    for section in PARTS[part]:
        if found:
            found.append(SettingRow(section, "", head=True))
        found += [row for row in rows if row.part == section]
    return found


def matching(rows: Sequence[SettingRow], words: str) -> list[SettingRow]:
    """Return the rows of all parts that have all of some words, below the headings of their sections."""
    wanted = words.lower().split()
    found: list[SettingRow] = []
    for part in PARTS:
        for row in in_part(rows, part):
            text = " ".join((part, row.part, row.name, row.value, row.note, row.about)).lower()
            if row.head or not all(word in text for word in wanted):
                continue
            if not found or found[-1].part != row.part:
                name = part if row.part == part else f"{part}: {row.part}"
                found.append(SettingRow(row.part, name, head=True))
            found.append(row)
    return found


def theme_label(name: str, options: Options) -> str:
    """Return a theme's line in the list to choose from."""
    note = EXPLAINED[name] if name in THEMES else f"{THEME_DIRECTORY}/{name}.toml"
    here = " (current)" if name == options.theme else ""
    return f"{name}{here}{f' · {note}' if note else ''}"


def notice_rows(options: Options, terminal: "Route | None") -> Iterator[SettingRow]:
    """Yield further rows of the notices; `terminal` is how they reach the terminal, once known."""
    hours = "no notices then; local time" if options.quiet else ""
    yield SettingRow(NOTICES, "Quiet hours", options.quiet or "none", hours, "quiet")
    if terminal is not None:
        yield SettingRow(NOTICES, "Terminal", terminal.name or "unknown", terminal.words)


def next_choice(options: Options, name: str) -> str | bool:
    """Return the next value of a setting."""
    choices, value = options.choices(name), getattr(options, name)
    # A theme in use may have been deleted.
    at = choices.index(value) if value in choices else -1
    return choices[(at + 1) % len(choices)]


def service_rows(found: ServiceSettings, own_machine: bool) -> Iterator[SettingRow]:
    """Yield the rows of the service's settings."""
    yield head(AGENTS)
    yield from _unread(AGENTS, found, "agents", found.agents)
    for agent in found.agents or ():
        yield _agent(agent, own_machine, found.progress.get(agent.id, ""))
    yield head(CREDENTIALS, "personal; replicas get them when they start")
    yield from _unread(CREDENTIALS, found, "credentials", found.credentials)
    for provider, status in (found.credentials or {}).items():
        yield _credential(provider, status)
    yield SettingRow(CREDENTIALS, "Add provider", note="enter to add", action="provider")
    yield head(API_KEYS)
    yield from _unread(API_KEYS, found, "api_keys", found.api_keys)
    for key in found.api_keys or ():
        used = "never used" if key.last_used_at is None else f"used {_day(key.last_used_at)}"
        created = f"created {_day(key.created_at)}, {used}"
        yield SettingRow(API_KEYS, key.name, f"{key.key_prefix}...", created, "key", str(key.id))
    yield SettingRow(API_KEYS, "Create a key", note="enter to add", action="new-key")
    yield head(NOTIFICATIONS, "sent by the service, also while no cockpit is open")
    yield from _unread(NOTIFICATIONS, found, "notifications", found.notifications)
    if found.notifications is not None:
        target = found.notifications
        value = (target.service or "connected") if target.connected else "none"
        yield SettingRow(NOTIFICATIONS, "Target", value, "enter to enter a URL", "target")


def _unread(part: str, found: ServiceSettings, name: str, value: object) -> Iterator[SettingRow]:
    if problem := found.problems.get(name):
        yield SettingRow(part, problem, mark="✗")
    elif value is None:
        yield SettingRow(part, "Reading …")


def _agent(agent: Agent, own_machine: bool, progress: str) -> SettingRow:
    if agent.installed or agent.available:
        state = "ready" if agent.available else "not ready"
        value = " ".join(part for part in (state, agent.version) if part)
        mark = "✓" if agent.available else "✗"
        return SettingRow(AGENTS, agent.name, value, agent.reason or "", "", agent.id, mark)
    if agent.install is not None and own_machine:
        note = progress or f"enter to install (qd agents install {agent.id})"
        return SettingRow(AGENTS, agent.name, "not installed", note, "install", agent.id, "○")
    note = agent.install or agent.reason or ""
    return SettingRow(AGENTS, agent.name, "not installed", note, "", agent.id, "○")


def _credential(provider: str, status: CredentialStatus) -> SettingRow:
    value = (status.api_key or "set") if status.has_credentials else "none"
    note = "enter to replace" if status.has_credentials else "enter to set"
    return SettingRow(CREDENTIALS, provider, value, note, "credential", provider)


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d}"


def key_rows(options: Options, file: str) -> Iterator[SettingRow]:
    """Yield the rows of the keys, with the faults of the configuration first."""
    yield head(KEYS, f"edit [keys] in {file}" if file else "")
    for fault in options.faults:
        yield SettingRow(KEYS, fault, mark="✗")
    seen: set[str] = set()
    for where in KeyContext:
        for action in ACTIONS[where]:
            if action.id not in seen:
                seen.add(action.id)
                yield _key(where, action)


def _key(where: KeyContext, action: Action) -> SettingRow:
    keys = " ".join(shown_keys(action)) or "no key"
    note = f"{action.help} ({where.value})"
    return SettingRow(KEYS, action.id, keys, note, mark="*" if is_rebound(action) else "")


class SettingsList(RowList[str], HasKeyContext):
    """The settings, with headings."""

    DEFAULT_CSS = """
    SettingsList {
        padding: 0 1;
        &:blur > .rows--cursor { background: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.SETTINGS)]

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.SETTINGS

    @property
    def chosen_row(self) -> SettingRow | None:
        """The line under the cursor."""
        row = self.rows[self.cursor] if self.cursor < len(self.rows) else None
        return row if isinstance(row, SettingRow) else None

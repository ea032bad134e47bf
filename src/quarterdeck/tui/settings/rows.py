"""The lines of the settings page, as data."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from quarterdeck.store.settings import ServiceSettings
from quarterdeck.tui.actions import ACTIONS, Action, Where, shown_keys
from quarterdeck.tui.actions.current import is_rebound
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.options import CHOICES, Options
from quarterdeck.tui.surroundings import Known
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.credentials import CredentialStatus

CONNECTIONS = "Connections"
LOOK = "This cockpit"
AGENTS = "Agents"
CREDENTIALS = "Keys of providers"
API_KEYS = "API keys"
NOTIFICATIONS = "Notifications"
KEYS = "Keys"

SETTINGS = {
    "theme": "Theme",
    "motion": "Motion",
    "mouse": "Mouse",
    "notices": "Notices",
    "clipboard": "Copying by programs",
}
EXPLAINED = {
    "dark": "",
    "light": "",
    "ansi": "your terminal's own 16 colors",
    "auto": "reduced over SSH",
    "full": "",
    "reduced": "nothing moves",
    "osc": "when a replica needs you: a message to your terminal",
    "bell": "when a replica needs you: the bell",
    "off": "",
    "ask": "what a program in a terminal copies waits for your word",
    "refuse": "a program in a terminal copies nothing",
    "True": "",
    "False": "your terminal selects text itself",
}


@dataclass(frozen=True)
class Row:
    """`deed` and `value` say what it is about; a row without a deed is only read.

    `head` begins a part. `mark` is one cell before the name.
    """

    part: str
    name: str
    value: str = ""
    note: str = ""
    deed: str = ""
    about: str = ""
    mark: str = ""
    head: bool = False


def head(part: str, note: str = "") -> Row:
    return Row(part, part, note=note, head=True)


def connection_rows(known: list[Known], current: str, problem: str, *, more: bool) -> Iterator[Row]:
    """`more` is whether others can be made known."""
    yield head(CONNECTIONS)
    for one in known:
        here = one.name == current
        note = "you are here" if here else keyed("{settings.change} goes there")
        yield Row(CONNECTIONS, one.name, one.shown, note, "connect", one.name, "●" if here else "")
    if more:
        note = keyed("{settings.change} asks for its address")
        yield Row(CONNECTIONS, "Another service", note=note, deed="new-connection")
    if problem:
        yield Row(CONNECTIONS, problem, mark="✗")


def look_rows(options: Options, no_color: bool) -> Iterator[Row]:
    yield head(LOOK)
    for name, label in SETTINGS.items():
        value = getattr(options, name)
        note = EXPLAINED.get(str(value), "")
        if name == "theme" and no_color:
            note = "NO_COLOR is set: no color is sent"
        shown = ("on" if value else "off") if isinstance(value, bool) else str(value)
        yield Row(LOOK, label, shown, note, "setting", name)


def next_choice(options: Options, name: str) -> str | bool:
    """What a setting becomes when it is changed."""
    choices = CHOICES[name]
    return choices[(choices.index(getattr(options, name)) + 1) % len(choices)]


def service_rows(found: ServiceSettings, own_machine: bool) -> Iterator[Row]:
    yield head(AGENTS)
    yield from _unread(AGENTS, found, "agents", found.agents)
    for agent in found.agents or ():
        yield _agent(agent, own_machine, found.progress.get(agent.id, ""))
    yield head(CREDENTIALS, "your own; replicas get them when they start")
    yield from _unread(CREDENTIALS, found, "credentials", found.credentials)
    for provider, status in (found.credentials or {}).items():
        yield _credential(provider, status)
    yield Row(CREDENTIALS, "Another provider", note="enter asks for its name", deed="provider")
    yield head(API_KEYS, "what programs show this service")
    yield from _unread(API_KEYS, found, "api_keys", found.api_keys)
    for key in found.api_keys or ():
        used = "never used" if key.last_used_at is None else f"used {_day(key.last_used_at)}"
        made = f"made {_day(key.created_at)}, {used}"
        yield Row(API_KEYS, key.name, f"{key.key_prefix}...", made, "key", str(key.id))
    yield Row(API_KEYS, "A new key", note="enter asks for its name", deed="new-key")
    yield head(NOTIFICATIONS, "sent by the service, also while no cockpit is open")
    yield from _unread(NOTIFICATIONS, found, "notifications", found.notifications)
    if found.notifications is not None:
        target = found.notifications
        value = (target.service or "connected") if target.connected else "nowhere"
        yield Row(NOTIFICATIONS, "Target", value, "enter asks for an address", "target")


def _unread(part: str, found: ServiceSettings, name: str, value: object) -> Iterator[Row]:
    if problem := found.problems.get(name):
        yield Row(part, problem, mark="✗")
    elif value is None:
        yield Row(part, "Reading …")


def _agent(agent: Agent, own_machine: bool, progress: str) -> Row:
    if agent.installed or agent.available:
        state = "ready" if agent.available else "not ready"
        value = " ".join(part for part in (state, agent.version) if part)
        mark = "✓" if agent.available else "✗"
        return Row(AGENTS, agent.name, value, agent.reason or "", "", agent.id, mark)
    if agent.install is not None and own_machine:
        note = progress or f"enter installs it: qd agents install {agent.id}"
        return Row(AGENTS, agent.name, "not installed", note, "install", agent.id, "○")
    note = agent.install or agent.reason or ""
    return Row(AGENTS, agent.name, "not installed", note, "", agent.id, "○")


def _credential(provider: str, status: CredentialStatus) -> Row:
    value = (status.api_key or "set") if status.has_credentials else "none"
    note = "enter replaces it" if status.has_credentials else "enter sets it"
    return Row(CREDENTIALS, provider, value, note, "credential", provider)


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d}"


def key_rows(options: Options, file: str) -> Iterator[Row]:
    yield head(KEYS, f"others: a table [keys] in {file}" if file else "")
    for fault in options.faults:
        yield Row(KEYS, fault, mark="✗")
    told: set[str] = set()
    for where in Where:
        for action in ACTIONS[where]:
            if action.id not in told:
                told.add(action.id)
                yield _key(where, action)


def _key(where: Where, action: Action) -> Row:
    keys = " ".join(shown_keys(action)) or "no key"
    note = f"{action.help} ({where.value})"
    return Row(KEYS, action.id, keys, note, mark="*" if is_rebound(action) else "")

"""The user's settings for the cockpit itself: its look, its notices, its keys.

    [keys]
    "replica.delete" = "D"
    "replica.open" = ["enter", "z"]
    "app.quit" = []                      # no key; the palette still has it

Errors are reported as sentences; those settings and actions keep their defaults.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from quarterdeck.store.status import Attention
from quarterdeck.tui.actions import ACTIONS, Action, KeyContext
from quarterdeck.tui.actions.model import (
    AROUND,
    TYPING,
    InvalidKeyNameError,
    is_text,
    key_name,
    shown_name,
)

if TYPE_CHECKING:
    from quarterdeck.tui.theme_files import ThemeFiles

Keys = tuple[str, ...]


class Keymap(NamedTuple):
    """Configured keys, by action; errors of the file are in `faults`."""

    instead: Mapping[str, Keys] = MappingProxyType({})
    faults: tuple[str, ...] = ()


class KeyConflict(NamedTuple):
    """A key of several actions in one place."""

    where: KeyContext
    key: str
    ids: tuple[str, ...]


def read_keymap(table: Mapping[str, object]) -> Keymap:
    """Return the keymap of the file's table, without its invalid entries."""
    instead: dict[str, Keys] = {}
    faults: list[str] = []
    for action_id, value in _flat(table):
        try:
            instead[action_id] = _keys(action_id, value)
        except ValueError as fault:
            faults.append(str(fault))
    return _without_clashes(instead, faults)


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Yield ids and values: TOML reads an id without quotes as nested tables."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, object]", value), f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _keys(action_id: str, value: object) -> Keys:
    """Return the keys of one line.

    Raises:
        ValueError: the line is invalid; the message is a sentence about it.
    """
    if not places_of(action_id):
        close = get_close_matches(action_id, all_ids(), n=1, cutoff=0.6)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ValueError(f"There is no action {action_id}.{hint}")
    if any(action.fixed for _, action in places_of(action_id)):
        raise ValueError(f"{action_id} cannot be another key.")
    written = _written(action_id, value)
    keys = tuple(dict.fromkeys(_key(action_id, one) for one in written))
    if any(place in TYPING for place, _ in places_of(action_id)):
        for key in filter(is_text, keys):
            shown = shown_name(key)
            raise ValueError(f"{action_id} cannot be {shown}: where it works, {shown} is typed.")
    return keys


def _written(action_id: str, value: object) -> list[str]:
    if isinstance(value, str):
        # A list in one text, in the format of Textual's own keymaps; a comma alone is a key.
        return [key for key in value.split(",") if key.strip()] if len(value) > 1 else [value]
    many = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(key, str) for key in many):
        raise ValueError(f"The keys of {action_id} are neither a text nor a list of texts.")
    return cast("list[str]", many)


def _key(action_id: str, written: str) -> str:
    try:
        return key_name(written)
    except InvalidKeyNameError as why:
        raise ValueError(f"{action_id} cannot be {written!r}: {why}.") from why


def all_ids() -> list[str]:
    """Return the ids of all actions, each once."""
    return list(dict.fromkeys(action.id for actions in ACTIONS.values() for action in actions))


def places_of(action_id: str) -> list[tuple[KeyContext, Action]]:
    """Return the places of an action, and what it is there."""
    return [
        (where, action)
        for where, actions in ACTIONS.items()
        for action in actions
        if action.id == action_id
    ]


def _without_clashes(instead: dict[str, Keys], faults: list[str]) -> Keymap:
    """Remove clashing keys until there are none: a restored key may clash in its turn."""
    while found := clashes(instead):
        back = {one for clash in found for one in clash.ids if one in instead}
        if not back:
            break
        faults += _clash_sentences(found)
        for action_id in back:
            del instead[action_id]
    return Keymap(instead, tuple(dict.fromkeys(faults)))


def _clash_sentences(found: list[KeyConflict]) -> list[str]:
    """Return a sentence for each key and its actions, naming the first place where they clash."""
    first = {(clash.key, clash.ids): clash for clash in reversed(found)}
    return [
        f"{shown_name(conflict.key)} is {' and '.join(conflict.ids)} at once ({conflict.where.value})."
        for conflict in reversed(first.values())
    ]


def clashes(instead: Mapping[str, Keys]) -> list[KeyConflict]:
    """Return the keys with several actions in one place."""
    found: list[KeyConflict] = []
    for where in ACTIONS:
        owners: dict[str, list[str]] = {}
        for action in _active(where):
            for key in () if action.fixed else instead.get(action.id, action.default):
                ids = owners.setdefault(key, [])
                if action.id not in ids:
                    ids.append(action.id)
        found += [
            KeyConflict(where, key, tuple(sorted(ids)))
            for key, ids in owners.items()
            if len(ids) > 1
        ]
    return found


def _active(where: KeyContext) -> Iterator[Action]:
    """Yield the actions of a place."""
    for place in (where, *AROUND.get(where, (KeyContext.ANYWHERE,))):
        yield from ACTIONS[place]


THEMES = ("dark", "light", "ansi")
THEME_DIRECTORY = "themes"
"""Where themes of the user's own are, beside the configuration file."""
MOTIONS = ("auto", "full", "reduced")
NOTICES = ("osc", "bell", "off")
NOTICE_KINDS = ("desktop", "bell", "off")
NOTICE_OF = {
    Attention.ASKS: "notices_asking",
    Attention.PLAN: "notices_plan",
    Attention.FAILED: "notices_failed",
    Attention.DONE_UNSEEN: "notices_done",
}
"""The settings with the rule of each state that causes a notice."""
QUIET = "quiet"
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
CLIPBOARD = ("ask", "refuse")
CALLS = ("edits", "output", "folded")
EDITING = ("standard", "vim")
IMAGES = ("auto", "kitty", "sixel", "blocks", "off")

CHOICES: dict[str, tuple[str | bool, ...]] = {
    "theme": THEMES,
    "motion": MOTIONS,
    "mouse": (True, False),
    "notices": NOTICES,
    **dict.fromkeys(NOTICE_OF.values(), NOTICE_KINDS),
    "clipboard": CLIPBOARD,
    "calls": CALLS,
    "editing": EDITING,
    "images": IMAGES,
}
"""The settings of the table `[cockpit]`, and their allowed values; the first is the default."""


class Options(NamedTuple):
    """`faults` describes in sentences the invalid settings of the file, which keep their defaults."""

    theme: str = "dark"
    motion: str = "auto"
    mouse: bool = True
    notices: str = "osc"
    notices_asking: str = "desktop"
    notices_plan: str = "desktop"
    notices_failed: str = "desktop"
    notices_done: str = "desktop"
    quiet: str = ""
    clipboard: str = "ask"
    calls: str = "edits"
    editing: str = "standard"
    images: str = "auto"
    keymap: Keymap = Keymap()
    faults: tuple[str, ...] = ()
    own_themes: "ThemeFiles | None" = None

    def choices(self, name: str) -> tuple[str | bool, ...]:
        """Return the values that a setting can have."""
        own = self.own_themes
        return (*CHOICES[name], *(own.themes if own is not None and name == "theme" else ()))

    def with_setting(self, name: str, value: str | bool) -> "Options":
        """Return a copy with one setting of `CHOICES` changed."""
        return self._replace(**cast("dict[str, Any]", {name: value}))

    def kind_of_notice(self, attention: Attention) -> str:
        """Return the kind of notice for a state: one of `NOTICE_KINDS`, and at most what `notices` allows."""
        allowed = {"osc": "desktop"}.get(self.notices, self.notices)
        rule = str(getattr(self, NOTICE_OF[attention])) if attention in NOTICE_OF else "off"
        return max(allowed, rule, key=NOTICE_KINDS.index)


def quiet_hours(text: str) -> tuple[time, time] | None:
    """Return beginning and end of quiet hours such as `22:00-07:00`; None for an empty text.

    Raises:
        ValueError: the text is neither.
    """
    if not text:
        return None
    found = _HOURS.fullmatch(text)
    if found is None or found[0][:5] == found[0][6:]:
        raise ValueError("Quiet hours are two different times, such as 22:00-07:00.")
    hours = [int(part) for part in found.groups()]
    return time(hours[0], hours[1]), time(hours[2], hours[3])


def is_quiet(text: str, now: datetime) -> bool:
    """Return whether a local time is within the quiet hours, which may go across midnight."""
    hours = quiet_hours(text)
    if hours is None:
        return False
    begin, end = hours
    inside = begin <= now.time() < end
    return inside if begin < end else not end <= now.time() < begin


def theme_files(directory: Path) -> list[Path]:
    """Return the files of the user's own themes, which may have errors."""
    try:
        return sorted(directory.glob("*.toml"))
    except OSError:
        return []


def read_options(document: Mapping[str, object], themes: Iterable[str] = ()) -> Options:
    """Return the cockpit's part of a configuration file, without its invalid settings.

    `themes` are names of the user's own.
    """
    faults: list[str] = []
    settings = _settings(document.get("cockpit", {}), faults, tuple(themes))
    keys = document.get("keys", {})
    if not isinstance(keys, dict):
        faults.append("keys is not a table; write it as [keys].")
        keys = {}
    keymap = read_keymap(cast("dict[str, object]", keys))
    return Options(**settings, keymap=keymap, faults=(*faults, *keymap.faults))


def _settings(table: object, faults: list[str], themes: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(table, dict):
        faults.append("cockpit is not a table; write it as [cockpit].")
        return {}
    settings: dict[str, Any] = {}
    for name, value in cast("dict[str, object]", table).items():
        allowed = CHOICES.get(name)
        if allowed is not None and name == "theme":
            allowed = (*allowed, *themes)
        if name == QUIET:
            try:
                quiet_hours(value if isinstance(value, str) else repr(value))
            except ValueError as error:
                faults.append(f"cockpit.{name}: {error}")
            else:
                settings[name] = value
        elif allowed is None:
            faults.append(
                f"cockpit.{name} is not a setting; known: {', '.join((*CHOICES, QUIET))}."
            )
        elif not _is_one_of(value, allowed):
            choices = ", ".join(_toml(choice) for choice in allowed)
            faults.append(f"cockpit.{name} is not one of {choices}.")
        else:
            settings[name] = value
    return settings


def _is_one_of(value: object, allowed: tuple[str | bool, ...]) -> bool:
    # 1 is equal to true, but is not accepted for it.
    return any(type(value) is type(choice) and value == choice for choice in allowed)


def _toml(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value

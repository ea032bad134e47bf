"""The user's settings for the cockpit itself: its look, its notices, its keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from quarterdeck.tui.keymap import Keymap, read_keymap

THEMES = ("dark", "light", "ansi")
MOTIONS = ("auto", "full", "reduced")
NOTICES = ("osc", "bell", "off")
CLIPBOARD = ("ask", "refuse")

CHOICES: dict[str, tuple[str | bool, ...]] = {
    "theme": THEMES,
    "motion": MOTIONS,
    "mouse": (True, False),
    "notices": NOTICES,
    "clipboard": CLIPBOARD,
}
"""The settings of the table `[cockpit]`, and their allowed values; the first is the default."""


@dataclass(frozen=True)
class Options:
    """`faults` describes in sentences the invalid settings of the file, which keep their defaults."""

    theme: str = "dark"
    motion: str = "auto"
    mouse: bool = True
    notices: str = "osc"
    clipboard: str = "ask"
    keymap: Keymap = field(default_factory=Keymap)
    faults: tuple[str, ...] = ()

    def with_setting(self, name: str, value: str | bool) -> "Options":
        """Return a copy with one setting of `CHOICES` changed."""
        return replace(self, **cast("dict[str, Any]", {name: value}))


def read_options(document: Mapping[str, object]) -> Options:
    """Return the cockpit's part of a configuration file, without its invalid settings."""
    faults: list[str] = []
    settings = _settings(document.get("cockpit", {}), faults)
    keys = document.get("keys", {})
    if not isinstance(keys, dict):
        faults.append("keys is not a table; write it as [keys].")
        keys = {}
    keymap = read_keymap(cast("dict[str, object]", keys))
    return replace(Options(), **settings, keymap=keymap, faults=(*faults, *keymap.faults))


def _settings(table: object, faults: list[str]) -> dict[str, Any]:
    if not isinstance(table, dict):
        faults.append("cockpit is not a table; write it as [cockpit].")
        return {}
    settings: dict[str, Any] = {}
    for name, value in cast("dict[str, object]", table).items():
        allowed = CHOICES.get(name)
        if allowed is None:
            faults.append(f"cockpit.{name} is not a setting; known: {', '.join(CHOICES)}.")
        elif not _is_one_of(value, allowed):
            choices = ", ".join(_written(one) for one in allowed)
            faults.append(f"cockpit.{name} is not one of {choices}.")
        else:
            settings[name] = value
    return settings


def _is_one_of(value: object, allowed: tuple[str | bool, ...]) -> bool:
    # 1 is equal to true, but is not accepted for it.
    return any(type(value) is type(one) and value == one for one in allowed)


def _written(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value

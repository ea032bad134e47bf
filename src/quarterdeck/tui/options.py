"""What a person set for the cockpit itself: its look, its notices, its keys."""

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
"""The settings of the table `[cockpit]`, and what each may be; the first is what it is by itself."""


@dataclass(frozen=True)
class Options:
    """`faults` says in sentences what of the file cannot be; there the default holds."""

    theme: str = "dark"
    motion: str = "auto"
    mouse: bool = True
    notices: str = "osc"
    clipboard: str = "ask"
    keymap: Keymap = field(default_factory=Keymap)
    faults: tuple[str, ...] = ()

    def with_setting(self, name: str, value: str | bool) -> "Options":
        """The same with one setting of `CHOICES` changed."""
        return replace(self, **cast("dict[str, Any]", {name: value}))


def read_options(document: Mapping[str, object]) -> Options:
    """The cockpit's part of a configuration file, as far as it can be."""
    faults: list[str] = []
    settings = _settings(document.get("cockpit", {}), faults)
    keys = document.get("keys", {})
    if not isinstance(keys, dict):
        faults.append("keys is no table; it is written as [keys].")
        keys = {}
    keymap = read_keymap(cast("dict[str, object]", keys))
    return replace(Options(), **settings, keymap=keymap, faults=(*faults, *keymap.faults))


def _settings(table: object, faults: list[str]) -> dict[str, Any]:
    if not isinstance(table, dict):
        faults.append("cockpit is no table; it is written as [cockpit].")
        return {}
    found: dict[str, Any] = {}
    for name, value in cast("dict[str, object]", table).items():
        allowed = CHOICES.get(name)
        if allowed is None:
            faults.append(f"cockpit.{name} is no setting; there is: {', '.join(CHOICES)}.")
        elif not _is_one_of(value, allowed):
            told = ", ".join(_written(one) for one in allowed)
            faults.append(f"cockpit.{name} is none of {told}.")
        else:
            found[name] = value
    return found


def _is_one_of(value: object, allowed: tuple[str | bool, ...]) -> bool:
    # One is equal to true, and is not meant by it.
    return any(type(value) is type(one) and value == one for one in allowed)


def _written(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value

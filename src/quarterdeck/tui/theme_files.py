"""Themes of the user's own: a file `themes/NAME.toml` beside the configuration file for each.

    dark = true
    primary = "#5fb3b3"
    background = "#1b2b34"

    [variables]
    border = "#5fb3b3"

Fields are those of Textual's themes. What a file leaves out is as in the dark or the light theme; Textual
derives its other colors. A file with an error is not a theme, and the error names file and key. Colors
that are hard to tell apart are a warning only.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from textual.color import Color, ColorParseError
from textual.theme import Theme

from quarterdeck.local.files import read_file
from quarterdeck.tui.options import THEME_DIRECTORY, THEMES, theme_files
from quarterdeck.tui.themes import NEEDS_YOU, own_themes

COLORS = (
    *("primary", "secondary", "accent", "foreground", "background", "surface", "panel", "boost"),
    *("warning", "error", "success"),
)
NUMBERS = ("luminosity_spread", "text_alpha")
FIELDS = ("dark", *COLORS, *NUMBERS, "variables")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_AUTO = re.compile(r"auto(?: (?:100|[1-9]?[0-9])%)?")
_STYLES = {"none", "not", "bold", "dim", "italic", "reverse", "strike", "underline"}

READABLE = 4.5
"""The least contrast of text, by WCAG 2 AA."""
_TEXTS = ("foreground", NEEDS_YOU, "text-muted", "text-primary", "text-error", "text-success")
_GROUNDS = ("background", "surface", "panel")
_WRITTEN_ON = (
    ("block-cursor-foreground", "block-cursor-background"),
    ("screen-selection-foreground", "screen-selection-background"),
)


@dataclass(frozen=True)
class ThemeFiles:
    """The themes by name, sentences about files that cannot be used, and when the files were changed."""

    themes: Mapping[str, Theme] = field(default_factory=dict[str, Theme])
    faults: tuple[str, ...] = ()
    stamp: tuple[tuple[str, int, int], ...] = ()


class ThemeFileError(Exception):
    """A file is not a theme; the text says why, after its name."""


def stamp_of(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what changes with the files of a directory."""
    found: list[tuple[str, int, int]] = []
    for file in theme_files(directory):
        try:
            state = file.stat()
        except OSError:
            continue
        found.append((file.name, state.st_mtime_ns, state.st_size))
    return tuple(found)


def read_themes(directory: Path) -> ThemeFiles:
    """Return the themes of a directory; without it, none."""
    stamp = stamp_of(directory)
    themes: dict[str, Theme] = {}
    faults: list[str] = []
    for file in theme_files(directory):
        try:
            themes[file.stem] = read_theme(file)
        except ThemeFileError as error:
            faults.append(f"{THEME_DIRECTORY}/{file.name}: {error}")
    return ThemeFiles(themes, tuple(faults), stamp)


def read_theme(file: Path) -> Theme:
    """Return the theme of a file.

    Raises:
        ThemeFileError: it is not one.
    """
    if file.stem in THEMES:
        raise ThemeFileError(f"{file.stem} is a built-in theme; choose another name.")
    if not _NAME.fullmatch(file.stem):
        raise ThemeFileError("a theme's name has letters, digits, - and _ only.")
    try:
        document = tomllib.loads(read_file(file).decode())
    except OSError as error:
        raise ThemeFileError(f"cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ThemeFileError(f"not valid TOML: {error}.") from error
    return _theme(file.stem, document)


def _theme(name: str, document: Mapping[str, Any]) -> Theme:
    for key in document:
        if key not in FIELDS:
            raise ThemeFileError(f"{key} is not a field; known: {', '.join(FIELDS)}.")
    dark = document.get("dark", True)
    if not isinstance(dark, bool):
        raise ThemeFileError("dark is not true or false.")
    base = next(theme for theme in own_themes() if not theme.ansi and theme.dark is dark)
    given: dict[str, Any] = {key: _color(key, document[key]) for key in COLORS if key in document}
    for key in NUMBERS:
        if key in document:
            given[key] = _share(key, document[key])
    theme = replace(base, name=name, **given, variables={})
    known = {**theme.to_color_system().generate(), **base.variables}
    selection = Color.parse(theme.primary)
    variables = {
        NEEDS_YOU: base.variables[NEEDS_YOU],
        "screen-selection-background": theme.primary,
        "screen-selection-foreground": (selection + selection.get_contrast_text(1.0)).hex,
        **_variables(document.get("variables", {}), known),
    }
    whole = replace(theme, variables=variables)
    try:
        whole.to_color_system().generate()
    except ColorParseError as error:
        raise ThemeFileError(f"variables: {error}.") from error
    return whole


def _color(key: str, value: object) -> str:
    if isinstance(value, str):
        try:
            Color.parse(value)
        except ColorParseError:
            pass
        else:
            return value
    raise ThemeFileError(f"{key}: {_shown(value)} is not a color, such as #5fb3b3.")


def _share(key: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise ThemeFileError(f"{key}: {_shown(value)} is not a number from 0 to 1.")


def _variables(table: object, known: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(table, dict):
        raise ThemeFileError("variables is not a table; write it as [variables].")
    found: dict[str, str] = {}
    for name, value in cast("dict[str, object]", table).items():
        key = f"variables.{name}"
        if name not in known:
            raise ThemeFileError(f"{key}: themes have no such variable.")
        if "-style" in name:
            found[name] = _style(key, value)
        elif isinstance(value, str) and _AUTO.fullmatch(value):
            found[name] = value
        else:
            found[name] = _color(key, value)
    return found


def _style(key: str, value: object) -> str:
    if isinstance(value, str) and value and all(word in _STYLES for word in value.split()):
        return value
    raise ThemeFileError(f"{key}: {_shown(value)} is not of {', '.join(sorted(_STYLES))}.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def hard_to_read(theme: Theme) -> list[str]:
    """Return sentences about texts of a theme whose contrast is low."""
    return [
        f"{text} on {ground} has a contrast of {seen:.1f}; text is readable from {READABLE}."
        for text, ground, seen in _contrasts(theme)
        if seen < READABLE - 0.05
    ]


def _contrasts(theme: Theme) -> Iterator[tuple[str, str, float]]:
    values = {**theme.to_color_system().generate(), **theme.variables}
    pairs = [(text, ground) for ground in _GROUNDS for text in _TEXTS]
    for text, ground in (*pairs, *_WRITTEN_ON):
        try:
            behind = Color.parse(values["background"]) + Color.parse(values[ground])
            shown = _on(behind, values[text])
        except ColorParseError:
            continue  # a color of the terminal
        dark, light = sorted((_luminance(behind), _luminance(shown)))
        yield text, ground, (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    """Return the relative luminance, as WCAG 2 defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _on(behind: Color, value: str) -> Color:
    if value.startswith("auto"):
        share = value.removeprefix("auto").strip().removesuffix("%") or "100"
        return behind + behind.get_contrast_text(int(share) / 100)
    name, _, percent = value.partition(" ")
    color = Color.parse(name)
    share = int(percent.rstrip("%")) / 100 if percent else 1.0
    return behind + color.multiply_alpha(share)

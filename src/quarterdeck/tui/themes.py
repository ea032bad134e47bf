"""How the cockpit looks: themes, no color at all, no motion, and whether the mouse is ours.

options -> Looks (a base of the app) -> theme, filters, animation, the terminal's mouse mode
"""

import os
from collections.abc import Mapping
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.color import Color
from textual.constants import TEXTUAL_ANIMATIONS
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme

from quarterdeck.tui import ansi_colors
from quarterdeck.tui.options import Options
from quarterdeck.tui.textual_version import is_known

ANSI = "terminal"
"""Our theme of the terminal's own sixteen colors."""
THEMES = {"dark": "textual-dark", "light": "textual-light", "ansi": ANSI}

MOUSE_MODES = (1000, 1003, 1015, 1006)
"""What Textual asks a terminal for: presses, movement, and two ways to tell them."""

_BLACK = 0
"""The number of the color that tracks of scrollbars have; it is no mark."""


def ansi_theme() -> Theme:
    """The sixteen colors, told apart on dark and on light terminals: no text in white or black."""
    base = BUILTIN_THEMES["ansi-dark"]
    variables = {
        **base.variables,
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-text-style": "bold",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-text-style": "reverse",
        "border-blurred": "ansi_bright_black",
        "text-muted": "ansi_bright_black",
        "text-disabled": "ansi_bright_black",
        "foreground-muted": "ansi_bright_black",
    }
    return Theme(
        name=ANSI,
        ansi=True,
        primary=base.primary,
        secondary=base.secondary,
        warning=base.warning,
        error=base.error,
        success=base.success,
        accent=base.accent,
        foreground=base.foreground,
        background=base.background,
        surface=base.surface,
        panel=base.panel,
        boost=base.boost,
        dark=base.dark,
        variables=variables,
    )


class NoColors(LineFilter):
    """Takes all colors away. What had a background of its own is shown reversed instead."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Part of `LineFilter`."""
        return [
            Segment(text, _colorless(style) if style is not None else None, control)
            for text, style, control in segments
        ]


def _colorless(style: Style) -> Style:
    plain = style.without_color
    behind = style.bgcolor
    marked = behind is not None and not behind.is_default and behind.number != _BLACK
    return plain + Style(reverse=True) if marked and not style.reverse else plain


def is_reduced(options: Options, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether nothing may move: asked for, or left to us and the line is one over SSH."""
    if options.motion == "auto":
        return "SSH_CONNECTION" in environment or "SSH_TTY" in environment
    return options.motion == "reduced"


class Looks(App[Any]):
    """Put before `App` among an app's bases."""

    def begin_looks(self, options: Options) -> None:
        """To be called once, before the first frame."""
        self.register_theme(ansi_theme())
        self.ansi_theme_dark = ansi_colors.DARK
        self.ansi_theme_light = ansi_colors.LIGHT
        if self.no_color:
            # Shades of gray are colors too, and the terminal is not asked for them.
            self._filters[:] = [one for one in self._filters if type(one).__name__ != "Monochrome"]
            self._filters.append(NoColors())
        self.show_looks(options)

    def show_looks(self, options: Options) -> None:
        """Looks as the options say from now on."""
        self.theme = ANSI if self.no_color else THEMES[options.theme]
        self.animation_level = "none" if is_reduced(options) else TEXTUAL_ANIMATIONS
        self._take_mouse(options.mouse)

    def _take_mouse(self, wanted: bool) -> None:
        driver = self._driver
        if not isinstance(driver, LinuxDriver) or not is_known():
            return
        had = driver._mouse  # pyright: ignore[reportPrivateUsage]
        # The driver takes and gives the mouse back by itself around suspensions, as this says.
        driver._mouse = wanted  # pyright: ignore[reportPrivateUsage]
        if had != wanted and not self.is_headless:
            driver.write("".join(f"\x1b[?{mode}{'h' if wanted else 'l'}" for mode in MOUSE_MODES))
            driver.flush()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Nothing blinks: a cursor that does costs bytes without end."""
        if getattr(event.widget, "cursor_blink", False):
            event.widget.cursor_blink = False  # pyright: ignore[reportAttributeAccessIssue]

"""Themes, styles and marks.

The look of the cockpit: themes, no color at all, no motion, and whether we use the mouse.

options -> Appearance -> theme, filters, animation, the terminal's mouse mode

The style of a part that a widget paints itself, over that of the widget.

Textual's own partial styles leave out what is transparent: a background of 30 % would be painted in
full, and a text that is to contrast with its background would be white on any.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.constants import TEXTUAL_ANIMATIONS
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import Widget

from quarterdeck.store.status import WORDS, Attention, threads_words
from quarterdeck.tui import host_terminal
from quarterdeck.tui.options import Options
from quarterdeck.tui.textual_ext.driver import replace_filter, take_mouse

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState
    from quarterdeck.wire.git import PullRequestDetail


ANSI = "terminal"
"""Our theme of the terminal's own sixteen colors."""
THEMES = {"dark": "textual-dark", "light": "textual-light", "ansi": ANSI}

NEEDS_YOU = "needs-you"
"""The color of what waits for the user, in marks and, with `$` before it, in styles; nothing else has it."""


def _tracks(color: str) -> dict[str, str]:
    """Return variables that give the tracks of scroll bars this color, the screen's: some bars are always shown."""
    names = ("background", "background-hover", "background-active", "corner-color")
    return {f"scrollbar-{name}": color for name in names}


_DARK = {
    **_tracks("#121212"),
    NEEDS_YOU: "#FF8AE0",
    "border": "#3D9BE9",
    "panel-lighten-2": "#74808B",
    "scrollbar": "#5B7F9E",
    "scrollbar-hover": "#6F96B8",
    "text-primary": "#57A5E2",
    "text-secondary": "#86B2D2",
    "text-error": "#E58A98",
    "text-disabled": "auto 52%",
}
_LIGHT = {
    **_tracks("#E0E0E0"),
    NEEDS_YOU: "#8A0A78",
    "panel-lighten-2": "#6E6E6E",
    "block-cursor-blurred-background": "#00457826",
    "scrollbar": "#5B7288",
    "scrollbar-hover": "#45607A",
    "text-accent": "#6F4400",
    "text-warning": "#6F4400",
    "text-success": "#1F5C34",
    "text-muted": "auto 66%",
    "text-disabled": "auto 62%",
}
"""What differs from Textual's themes: text has a contrast of 4.5 to what is behind it, marks and borders 3."""

STYLES = """
SelectCurrent Static#label, SelectCurrent .arrow { color: $text-muted; }
SelectCurrent.-has-value Static#label { color: $foreground; }
TextArea .text-area--gutter, TextArea .text-area--placeholder { color: $text-muted; }
"""
"""The same for texts of Textual's widgets whose colors are no variables."""

_BLACK = 0
"""The color number of scrollbar tracks; marks do not use it."""


def ansi_theme() -> Theme:
    """Return the sixteen colors, distinct on dark and on light terminals: no text in white or black."""
    base = BUILTIN_THEMES["ansi-dark"]
    variables = {
        **base.variables,
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-text-style": "underline",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-text-style": "reverse",
        NEEDS_YOU: "ansi_magenta",
        "border": "ansi_cyan",
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


def readable_theme(
    name: str, primary: str, warning: str, error: str, colors: Mapping[str, str]
) -> Theme:
    """Return a theme of Textual's with other colors, in which selected text has separate ones.

    Textual's gives it the color of the selection, and leaves mixing that in to the renderer: where
    the text brings its own style, both would be the same.
    """
    base = BUILTIN_THEMES[name]
    selection = {
        "screen-selection-background": primary,
        "screen-selection-foreground": "#ffffff",
    }
    variables = {**base.variables, **selection, **colors}
    return replace(base, primary=primary, warning=warning, error=error, variables=variables)


def own_themes() -> tuple[Theme, ...]:
    """Return the themes of `THEMES`."""
    dark = readable_theme("textual-dark", "#0168B8", "#FFA62B", "#B83B5A", _DARK)
    light = readable_theme("textual-light", "#004578", "#845300", "#B83B5A", _LIGHT)
    return dark, light, ansi_theme()


class NoColors(LineFilter):
    """Removes all colors. What had its own background is shown reversed instead."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Part of `LineFilter`."""
        return [
            Segment(text, _colorless(style) if style is not None else None, control)
            for text, style, control in segments
        ]


def _colorless(style: Style) -> Style:
    plain = style.without_color
    backdrop = style.bgcolor
    marked = backdrop is not None and not backdrop.is_default and backdrop.number != _BLACK
    return plain + Style(reverse=True) if marked and not style.reverse else plain


def is_reduced(options: Options, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether motion is off: requested, or automatic and the connection is over SSH."""
    if options.motion == "auto":
        return "SSH_CONNECTION" in environment or "SSH_TTY" in environment
    return options.motion == "reduced"


class Appearance:
    """The look of an app, from the user's options."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._own: dict[str, str] = {}
        """Registered names of the user's own themes: a changed theme gets another one."""
        self._registered = 0

    def begin(self, options: Options) -> None:
        """Prepare the app. Call it once, before the first frame."""
        app = self._app
        for theme in own_themes():
            app.register_theme(theme)
        self._register(options)
        app.ansi_theme_dark = host_terminal.DARK
        app.ansi_theme_light = host_terminal.LIGHT
        if app.no_color:
            # Shades of gray are colors too, and the terminal is not queried for them.
            replace_filter(app, "Monochrome", NoColors())
        self.show(options)
        # Textual took those of its own theme, in which ours are missing.
        app.stylesheet.set_variables(app.get_css_variables())

    def reload(self, options: Options) -> None:
        """Apply options whose own themes have changed."""
        before = list(self._own.values())
        self._register(options)
        self.show(options)
        for name in before:
            self._app.unregister_theme(name)

    def _register(self, options: Options) -> None:
        self._own = {}
        for name, theme in options.own_themes.themes.items() if options.own_themes else ():
            self._registered += 1
            self._own[name] = f"own-{name}-{self._registered}"
            self._app.register_theme(replace(theme, name=self._own[name]))

    def show(self, options: Options) -> None:
        """Apply options from now on. A theme whose file has an error is the default one."""
        app = self._app
        name = {**THEMES, **self._own}.get(options.theme, THEMES["dark"])
        app.theme = ANSI if app.no_color else name
        app.animation_level = "none" if is_reduced(options) else TEXTUAL_ANIMATIONS
        take_mouse(app, options.mouse)


def part_style(widget: Widget, name: str) -> Style:
    """Return the theme's style of a component, mixed with what is below it; the rest is left unset."""
    cache = widget._rich_style_cache  # pyright: ignore[reportPrivateUsage] - emptied with the theme
    key = (f"part of {name}",)
    if key not in cache:
        style = _mixed(widget, name)
        cache[key] = (style, style)
    return cache[key][0]


def _mixed(widget: Widget, name: str) -> Style:
    styles = widget.get_component_styles(name)
    backdrop = widget.background_colors[1]
    has_background = styles.has_rule("background") and styles.background.a > 0
    if has_background:
        backdrop += styles.background
    color = None
    if styles.has_rule("color") and styles.color.a > 0:
        text = styles.color
        if styles.has_rule("auto_color") and styles.auto_color:
            text = backdrop.get_contrast_text(text.a)
        color = (backdrop + text).rich_color
    background = backdrop.rich_color if has_background else None
    return Style(color=color, bgcolor=background) + styles.text_style


class Mark(NamedTuple):
    """A one-cell sign, its word, and the name of its color."""

    sign: str
    word: str
    color: str


_SIGNS = {
    Attention.ASKS: ("▲", NEEDS_YOU),
    Attention.PLAN: ("▲", NEEDS_YOU),
    Attention.FAILED: ("✗", "error"),
    Attention.DONE_UNSEEN: ("✓", "success"),
    Attention.WORKING: ("●", "primary"),
    Attention.PREPARING: ("◌", "secondary"),
    Attention.IDLE: ("○", "muted"),
    Attention.SLEEPING: ("☾", "muted"),
    Attention.ARCHIVED: ("▪", "muted"),
}
MARKS = {state: Mark(sign, WORDS[state], color) for state, (sign, color) in _SIGNS.items()}

_CHECKS = {"passing": "✓", "pending": "●", "failing": "✗"}
_REVIEWS = {
    "approved": ("+", "approved"),
    "changes_requested": ("!", "changes requested"),
    "required": ("?", "review required"),
}


class PullMark(NamedTuple):
    """A pull request in a few cells, in words, and the name of its color."""

    sign: str
    words: str
    color: str
    brief: str = ""
    """The sign without the number of threads, where that is more."""


def pull_mark(state: "ReplicaState") -> PullMark | None:
    """Return the mark of a replica's pull request, only its number while no more is known."""
    pull = state.pull_request
    if pull is None:
        numbers = [request.number for request in state.record.pull_requests]
        return PullMark(f"#{numbers[-1]}", f"#{numbers[-1]}", "muted") if numbers else None
    number = f"#{pull.number}"
    if pull.state != "open":
        text = f"{number} {pull.state}"
        return PullMark(text, text, "muted")
    checks = _CHECKS.get(pull.checks.state or "", "")
    if pull.checks.state == "failing":
        checks += str(len(pull.checks.failed) or "")
    review = _REVIEWS[pull.review][0] if pull.review else ""
    brief = " ".join(filter(None, (number, "draft" if pull.draft else "", checks, review)))
    threads = str(pull.unresolved_threads or "")
    sign = brief + (threads if review or not threads else f" ¶{threads}")
    words = (
        f"{number} {'draft' if pull.draft else 'open'}",
        checks_words(pull),
        review_words(pull),
        threads_words(pull.unresolved_threads),
        "conflicts" if pull.mergeable is False else "",
    )
    return PullMark(sign, ", ".join(filter(None, words)), _color(pull), brief if threads else "")


def checks_words(pull: "PullRequestDetail") -> str:
    """Return the result of a pull request's checks; empty when there are none."""
    failed = len(pull.checks.failed)
    match pull.checks.state:
        case "failing":
            return f"✗ {failed or ''} check{'' if failed == 1 else 's'} failed".replace("  ", " ")
        case "pending":
            return "● checks running"
        case "passing":
            return "✓ checks passed"
        case None:
            return ""


def review_words(pull: "PullRequestDetail") -> str:
    """Return the result of the reviews; empty when there are none."""
    return _REVIEWS[pull.review][1] if pull.review else ""


def _color(pull: "PullRequestDetail") -> str:
    if pull.checks.state == "failing":
        return "error"
    open_work = pull.unresolved_threads or pull.mergeable is False
    if pull.review == "changes_requested" or open_work:
        return "warning"
    return {"passing": "success", "pending": "primary"}.get(pull.checks.state or "", "muted")

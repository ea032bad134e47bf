"""Styles of components laid over each other: colored text on the ground of a changed line.

Textual resolves one component at a time; here a ground is a tint of what lies below it, and the text
on it keeps its own color. Themes of the terminal's own colors have no tints: there, a changed line is
told by the color of its text.
"""

from rich.style import Style
from textual.color import Color
from textual.widget import Widget

TINTS = {"added", "removed", "added-word", "removed-word"}
"""Components that color the ground."""


class Shades:
    """Looks styles up once until `reset`."""

    def __init__(self, widget: Widget, prefix: str) -> None:
        self._widget = widget
        self._prefix = prefix
        self._known: dict[tuple[str, ...], Style] = {}

    def reset(self) -> None:
        """Another theme."""
        self._known.clear()

    def get(self, *names: str) -> Style:
        """The style of components, each over those before; empty names are none."""
        style = self._known.get(names)
        if style is None:
            style = self._known[names] = self._make([name for name in names if name])
        return style

    def _make(self, names: list[str]) -> Style:
        ground = self._widget.background_colors[1]
        text = self._widget.colors[3]
        marks = Style()
        own_colors = True
        for name in names:
            styles = self._widget.get_component_styles(f"{self._prefix}--{name}")
            if name in TINTS and styles.background.ansi is not None:
                text, own_colors = styles.background, False
                marks += Style(reverse=name.endswith("-word") or None)
                continue
            if styles.has_rule("background"):
                ground += styles.background
            if name.endswith("-word"):
                # The strongest ground of all: the colors of code are not seen on it.
                text, own_colors = self._widget.colors[3], False
            if styles.has_rule("auto_color") and styles.auto_color:
                text = ground.get_contrast_text(styles.color.a)
            elif styles.has_rule("color") and styles.color.a and own_colors:
                text = styles.color
            if styles.has_rule("text_style"):
                marks += styles.text_style
        return Style.from_color(_on(ground, text).rich_color, ground.rich_color) + marks


def _on(ground: Color, text: Color) -> Color:
    return text if text.ansi is not None else ground + text
